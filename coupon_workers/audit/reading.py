"""Reading the audit log: a page of it, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.audit.action import AuditAction
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.newest_page import newest
from coupon_workers.runtime.services import Services
from coupon_workers.schema import AuditLog
from coupon_workers.templates.field_type import Instant


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which rows; None: all. ``since`` is counted in, ``until`` is not."""

    subject: str | None = None
    action: AuditAction | None = None
    operator: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditEntry(BaseModel):
    """A row of the log."""

    model_config = ConfigDict(frozen=True)

    audit_id: str
    at: Instant
    key_id: str = Field(description="of the key; or `command line`, `system`")
    key_name: str | None = Field(description="the key's name at that moment")
    request_id: str | None = Field(description="the header X-Request-Id of the answer")
    action: str
    subject: str = Field(examples=["template:653247040368672768"])
    before: dict[str, Any] | None = Field(description="what has changed, as it was")
    after: dict[str, Any] | None = Field(description="as it is since, and what was given with it")


def read_audit_log(
    services: Services, wanted: AuditFilter, *, limit: int, before: int | None = None
) -> list[AuditEntry]:
    """Up to ``limit`` rows, newest first, with numbers below ``before``. Raises ``StoreUnavailable``."""
    fixed = {"subject": wanted.subject, "action": wanted.action, "operator": wanted.operator}
    page = newest(AuditLog.audit_id, limit=limit, before=before, **fixed)
    if wanted.since is not None:
        page = page.where(AuditLog.at >= wanted.since)
    if wanted.until is not None:
        page = page.where(AuditLog.at < wanted.until)
    with transaction(services.engine) as connection:
        rows = connection.execute(page).mappings().all()
    return [
        AuditEntry(
            audit_id=str(row["audit_id"]),
            at=row["at"],
            key_id=row["operator"],
            key_name=row["operator_name"],
            request_id=row["request_id"],
            action=row["action"],
            subject=row["subject"],
            before=row["before"],
            after=row["after"],
        )
        for row in rows
    ]
