"""Verdicts as they are told: which rule fired of whose claim, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.risk.policy import RiskVerdict
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.newest_page import newest
from coupon_workers.runtime.services import Services
from coupon_workers.schema import RiskVerdict as VerdictRow
from coupon_workers.templates.field_type import Instant


class VerdictAnswer(BaseModel):
    """A rule that fired."""

    model_config = ConfigDict(frozen=True)

    verdict_id: str
    template_id: str
    rule: str = Field(description="of the policy; or block_list, allow_list, missing_score")
    verdict: RiskVerdict
    shadow: bool = Field(description="only recorded")
    at: Instant
    claim_id: str | None = Field(description="null: the claim was refused")
    user_id: str
    device_id: str | None
    ip: str | None
    address_hash: str | None


def read_verdicts(
    services: Services,
    *,
    limit: int,
    before: int | None = None,
    template_id: int | None = None,
    user_id: str | None = None,
    rule: str | None = None,
) -> list[VerdictAnswer]:
    """Up to ``limit`` verdicts, newest first, with numbers below ``before``. Raises ``StoreUnavailable``."""
    fixed = {"template_id": template_id, "user_id": user_id, "rule": rule}
    wanted = newest(VerdictRow.verdict_id, limit=limit, before=before, **fixed)
    with transaction(services.engine) as connection:
        return [verdict_answer(row) for row in connection.execute(wanted).mappings()]


def verdict_answer(row: Mapping[Any, Any]) -> VerdictAnswer:
    """The answer for a row of ``risk_verdict``."""
    return VerdictAnswer.model_validate(
        dict(row)
        | {"verdict_id": str(row["verdict_id"]), "template_id": str(row["template_id"])}
        | {"claim_id": None if row["claim_id"] is None else str(row["claim_id"])}
    )
