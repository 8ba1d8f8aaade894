"""When a template may be claimed, asked of the database: only for templates the gate does not know."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.services import Services


@dataclass(frozen=True, slots=True)
class ClaimWindow:
    """The stored status and the half-open window of a template."""

    status: str
    claim_start: datetime
    claim_end: datetime


def find_claim_windows(services: Services, template_ids: Collection[int]) -> dict[int, ClaimWindow]:
    """The windows of those templates that there are, by id, in one query. Raises ``StoreUnavailable``."""
    with database_errors(), services.engine.connect() as connection:
        rows = connection.execute(
            text(
                "SELECT template_id, status, claim_start, claim_end FROM coupon_template"
                " WHERE template_id = ANY(CAST(:template_ids AS bigint[]))"
            ),
            {"template_ids": list(template_ids)},
        ).all()
    return {template_id: ClaimWindow(*window) for template_id, *window in rows}
