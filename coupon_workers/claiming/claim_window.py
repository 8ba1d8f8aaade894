"""When a template may be claimed, asked of the database: only for templates the gate does not know."""

from __future__ import annotations

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


def find_claim_window(services: Services, template_id: int) -> ClaimWindow | None:
    """The window; None when there is no such template. Raises ``StoreUnavailable``."""
    with database_errors(), services.engine.connect() as connection:
        row = connection.execute(
            text("SELECT status, claim_start, claim_end FROM coupon_template WHERE template_id = :template_id"),
            {"template_id": template_id},
        ).first()
    return None if row is None else ClaimWindow(*row)
