"""How a recall stands, for whoever asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import text

from coupon_workers.errors import NotFound
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.templates.field_type import Instant

_READ = text("SELECT * FROM coupon_revocation WHERE template_id = :template_id AND revocation_id = :revocation_id")


class RevocationAnswer(BaseModel):
    """A recall of a template's unused coupons."""

    model_config = ConfigDict(frozen=True)

    revocation_id: str
    template_id: str
    status: Literal["running", "done"]
    reason: str
    revoked: int = Field(description="coupons that were revoked so far")
    restocked: int = Field(description="units that went back to the stock: all of them, or none")
    locked: int = Field(description="coupons that orders held when the last pass came by; they are left")
    passes: int
    asked_by: str
    created_at: Instant
    finished_at: Instant | None


def read_revocation(services: Services, template_id: int, revocation_id: int) -> RevocationAnswer:
    """A recall. Raises ``NotFound`` ``REVOCATION_NOT_FOUND``, ``StoreUnavailable``."""
    named = {"template_id": template_id, "revocation_id": revocation_id}
    with transaction(services.engine) as connection:
        row = connection.execute(_READ, named).mappings().one_or_none()
    if row is None:
        raise NotFound("REVOCATION_NOT_FOUND", "this template has no such recall")
    return revocation_answer(dict(row))


def revocation_answer(row: Mapping[str, Any]) -> RevocationAnswer:
    """The answer for a row of ``coupon_revocation``."""
    return RevocationAnswer(
        revocation_id=str(row["revocation_id"]),
        template_id=str(row["template_id"]),
        status=row["status"],
        reason=row["reason"],
        revoked=row["revoked_count"],
        restocked=row["restocked_count"],
        locked=row["locked_count"],
        passes=row["pass_no"],
        asked_by=row["asked_by"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
    )
