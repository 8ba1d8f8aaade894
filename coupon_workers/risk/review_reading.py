"""Reviews as they are told: the claims that wait for an operator, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.newest_page import newest
from coupon_workers.runtime.services import Services
from coupon_workers.schema import RiskReview
from coupon_workers.templates.field_type import Instant

ReviewState = Literal["held", "approved", "rejected", "expired"]


class ReviewAnswer(BaseModel):
    """A claim that was held."""

    model_config = ConfigDict(frozen=True)

    claim_id: str
    template_id: str
    user_id: str
    device_id: str | None
    ip: str | None
    address_hash: str | None
    rule: str = Field(description="the first that asked for a review")
    state: ReviewState
    reason: str | None = Field(description="why it was rejected in the end, also when it was approved too late")
    claimed_at: Instant
    held_at: Instant
    deadline_at: Instant = Field(description="when it is rejected by itself")
    decided_by: str | None = Field(description="the key's id; null: the deadline")
    decided_at: Instant | None
    comment: str | None


def read_reviews(
    services: Services,
    *,
    limit: int,
    before: int | None = None,
    state: ReviewState | None = None,
    template_id: int | None = None,
) -> list[ReviewAnswer]:
    """Up to ``limit`` reviews, newest claims first, with claim ids below ``before``. Raises ``StoreUnavailable``."""
    wanted = newest(RiskReview.claim_id, limit=limit, before=before, state=state, template_id=template_id)
    with transaction(services.engine) as connection:
        return [review_answer(row) for row in connection.execute(wanted).mappings()]


def review_answer(row: Mapping[Any, Any]) -> ReviewAnswer:
    """The answer for a row of ``risk_review``."""
    told = {name: row[name] for name in ReviewAnswer.model_fields}
    return ReviewAnswer.model_validate(
        told | {"claim_id": str(row["claim_id"]), "template_id": str(row["template_id"])}
    )
