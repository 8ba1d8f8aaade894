"""Findings as they are shown (API.md, Back office)."""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select

from coupon_workers.errors import NotFound
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.reconciliation.repair_name import AUTOMATIC, RepairName
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.newest_page import newest
from coupon_workers.runtime.services import Services
from coupon_workers.schema import ReconFinding, ReconRunFinding


class FindingAnswer(BaseModel):
    """A difference, what it would cost, what mends it, and what has become of it."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    finding_id: str
    kind: ReconKind
    finding_class: str = Field(alias="class")
    subject: str = Field(description="what differs, in words and numbers")
    date: str | None = Field(description="the business day, for orders")
    template_id: str | None
    user_id: str | None
    order_no: str | None
    coupon_no: str | None
    evidence: dict[str, Any] = Field(description="both sides of what was compared")
    amount: int | None = Field(description="the money at stake, in minor units of the currency")
    currency: str | None
    repair: RepairName | None = Field(description="what is proposed; null: a person must look")
    automatic: bool = Field(description="whether the repair runs by itself")
    state: FindingState
    first_run_id: str
    last_run_id: str
    seen_as_of: str = Field(description="the latest moment as of which it was found")
    seen_count: int = Field(description="by how many runs it was found while it was open")
    opened_at: str
    closed_at: str | None
    decided_by: str | None
    comment: str | None
    outcome: dict[str, Any] | None = Field(description="what the repair did, or why it was refused")


def read_finding(services: Services, finding_id: int) -> FindingAnswer:
    """The finding. Raises ``NotFound`` ``FINDING_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        wanted = select(ReconFinding.__table__).where(ReconFinding.finding_id == finding_id)
        row = connection.execute(wanted).one_or_none()
    if row is None:
        raise NotFound("FINDING_NOT_FOUND", "there is no such finding")
    return _answer(row)


def read_findings(
    services: Services,
    *,
    limit: int,
    before: int | None = None,
    state: FindingState | None = None,
    kind: ReconKind | None = None,
    finding_class: str | None = None,
    day: date | None = None,
    run_id: int | None = None,
) -> list[FindingAnswer]:
    """The newest ``limit`` findings with identities below ``before``, of all that is asked for.

    Raises ``StoreUnavailable``.
    """
    fixed = {"state": state, "kind": kind, "finding_class": finding_class, "business_date": day}
    wanted = newest(ReconFinding.finding_id, limit=limit, before=before, **fixed)
    if run_id is not None:
        listed = select(ReconRunFinding.finding_id).where(ReconRunFinding.run_id == run_id)
        wanted = wanted.where(ReconFinding.finding_id.in_(listed))
    with transaction(services.engine) as connection:
        return [_answer(row) for row in connection.execute(wanted)]


def _answer(row: Any) -> FindingAnswer:
    return FindingAnswer(
        finding_id=str(row.finding_id),
        kind=row.kind,
        finding_class=row.finding_class,
        subject=row.subject,
        date=row.business_date and row.business_date.isoformat(),
        template_id=_text(row.template_id),
        user_id=row.user_id,
        order_no=row.order_no,
        coupon_no=_text(row.coupon_id),
        evidence=row.evidence,
        amount=row.amount_minor,
        currency=row.currency,
        repair=row.repair,
        automatic=row.repair in AUTOMATIC,
        state=row.state,
        first_run_id=str(row.first_run_id),
        last_run_id=str(row.last_run_id),
        seen_as_of=rfc3339(row.seen_as_of),
        seen_count=row.seen_count,
        opened_at=rfc3339(row.opened_at),
        closed_at=row.closed_at and rfc3339(row.closed_at),
        decided_by=row.decided_by,
        comment=row.comment,
        outcome=row.outcome,
    )


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
