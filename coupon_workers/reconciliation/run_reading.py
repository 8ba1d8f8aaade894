"""Reconciliations as they are shown: how they stand, and what they found, class by class (API.md, Back office)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select, text

from coupon_workers.errors import NotFound
from coupon_workers.reconciliation.kind import FindingState, ReconKind, RunStatus
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.newest_page import newest
from coupon_workers.runtime.services import Services
from coupon_workers.schema import ReconRun

_CLASSES = text("""
    SELECT finding_class, state, currency, count(*) AS count, sum(amount_minor) AS amount_minor
      FROM recon_run_finding JOIN recon_finding USING (finding_id) WHERE run_id = :run_id
     GROUP BY finding_class, state, currency ORDER BY finding_class, state, currency
""")


class ClassCount(BaseModel):
    """How many findings of a class there are in a state, and what is at stake with them."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    finding_class: str = Field(alias="class")
    state: FindingState = Field(description="as it is now, not as it was when the run ended")
    count: int
    amount: int | None = Field(description="in minor units of the currency")
    currency: str | None


class RunSummary(BaseModel):
    """A reconciliation at this moment. ``found`` = ``opened`` and those known before."""

    run_id: str
    kind: ReconKind
    as_of: str
    date: str | None = Field(description="the business day, for orders")
    status: RunStatus
    reason: str | None = Field(description="why it failed")
    examined: int | None = Field(description="things that were looked at")
    found: int | None
    opened: int | None
    resolved: int | None = Field(description="findings of before that are gone")
    truncated: bool = Field(description="there are more differences than a run lists")
    asked_by: str
    created_at: str
    started_at: str | None
    finished_at: str | None


class RunAnswer(RunSummary):
    """A reconciliation with what it found."""

    classes: list[ClassCount]


def read_run(services: Services, run_id: int) -> RunAnswer:
    """The run. Raises ``NotFound`` ``RECONCILIATION_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        row = connection.execute(select(ReconRun.__table__).where(ReconRun.run_id == run_id)).one_or_none()
        if row is None:
            raise NotFound("RECONCILIATION_NOT_FOUND", "there is no such reconciliation")
        return RunAnswer(**_summary(row).model_dump(), classes=_classes(connection, run_id))


def read_runs(
    services: Services, *, limit: int, before: int | None = None, kind: ReconKind | None = None
) -> Sequence[RunSummary]:
    """The newest ``limit`` runs with identities below ``before``. Raises ``StoreUnavailable``."""
    wanted = newest(ReconRun.run_id, limit=limit, before=before, kind=kind)
    with transaction(services.engine) as connection:
        return [_summary(row) for row in connection.execute(wanted)]


def _classes(connection: Connection, run_id: int) -> list[ClassCount]:
    return [
        ClassCount(
            finding_class=row.finding_class,
            state=row.state,
            count=row.count,
            amount=None if row.amount_minor is None else int(row.amount_minor),
            currency=row.currency,
        )
        for row in connection.execute(_CLASSES, {"run_id": run_id})
    ]


def _summary(row: Any) -> RunSummary:
    return RunSummary(
        run_id=str(row.run_id),
        kind=row.kind,
        as_of=rfc3339(row.as_of),
        date=row.business_date and row.business_date.isoformat(),
        status=row.status,
        reason=row.reason,
        examined=row.examined_count,
        found=row.found_count,
        opened=row.opened_count,
        resolved=row.resolved_count,
        truncated=row.truncated,
        asked_by=row.asked_by,
        created_at=rfc3339(row.created_at),
        started_at=row.started_at and rfc3339(row.started_at),
        finished_at=row.finished_at and rfc3339(row.finished_at),
    )
