"""A closed day as it is shown: its rows, totals per currency, and every closing it has had (API.md, Back office)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, Field
from sqlalchemy import Connection, text

from coupon_workers.errors import NotFound
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

CloseStatus = Literal["closed", "reopened"]

_REVISIONS = text("SELECT * FROM daily_close WHERE business_date = :day ORDER BY revision")
_LATEST = text("SELECT * FROM daily_close WHERE business_date = :day ORDER BY revision DESC LIMIT 1")
_ROWS = text(
    "SELECT * FROM daily_close_row WHERE business_date = :day AND revision = :revision ORDER BY template_id, currency"
)


class Sums(BaseModel):
    """Coupons, and amounts in minor units of ``currency``; ``expense_net`` = redeemed − returned + adjusted."""

    currency: str
    issued_count: int
    issued_amount: int | None = Field(description="face values; null where coupons have none (percent_off)")
    redeemed_count: int
    redeemed_amount: int = Field(description="taken off orders, by the ledger")
    returned_count: int = Field(description="coupons that came back")
    returned_amount: int = Field(description="taken back by refunds, by the ledger; also where no coupon came back")
    expired_count: int
    expired_amount: int | None
    adjusted_amount: int
    expense_net: int


class CloseRow(Sums):
    """What a template's coupons did and cost on the day. ``template_name`` as it was at closing."""

    template_id: str
    template_name: str


class Revision(BaseModel):
    """One closing of the day, and the trace of who opened it again."""

    revision: int
    status: CloseStatus
    closed_at: str
    closed_by: str
    reopened_at: str | None
    reopened_by: str | None
    reason: str | None


class DayClose(Revision):
    """The latest closing of a day, and all there were, oldest first."""

    date: str
    rows: list[CloseRow]
    totals: list[Sums]
    revisions: list[Revision]


def read_close(services: Services, day: date) -> DayClose:
    """The day as it was last closed. Raises ``NotFound`` ``DAILY_CLOSE_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        return read_whole(connection, day)


def read_latest(connection: Connection, day: date) -> Revision | None:
    """The latest closing, if there was any."""
    row = connection.execute(_LATEST, {"day": day}).one_or_none()
    return None if row is None else revision_of(row)


def read_whole(connection: Connection, day: date) -> DayClose:
    """The day as it was last closed. Raises ``NotFound`` ``DAILY_CLOSE_NOT_FOUND``."""
    revisions = [revision_of(row) for row in connection.execute(_REVISIONS, {"day": day})]
    if not revisions:
        raise NotFound("DAILY_CLOSE_NOT_FOUND", f"{day} has not been closed")
    latest = revisions[-1]
    found = connection.execute(_ROWS, {"day": day, "revision": latest.revision})
    rows = [_row(row) for row in found]
    return DayClose(date=day.isoformat(), **latest.model_dump(), rows=rows, totals=totals_of(rows), revisions=revisions)


def totals_of(rows: Sequence[Sums]) -> list[Sums]:
    """The sums of each currency, in the order of its code."""
    currencies = sorted({row.currency for row in rows})
    return [_total(currency, [row for row in rows if row.currency == currency]) for currency in currencies]


def _total(currency: str, rows: Sequence[Sums]) -> Sums:
    names = [name for name in Sums.model_fields if name != "currency"]
    return Sums(currency=currency, **{name: _sum(getattr(row, name) for row in rows) for name in names})


def _sum(amounts: Iterable[int | None]) -> Any:
    """None when there is nothing but None: coupons without a face value do not make one of nought."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def revision_of(row: Any) -> Revision:
    """A row of ``daily_close`` as it is shown."""
    return Revision(
        revision=row.revision,
        status=row.status,
        closed_at=rfc3339(row.closed_at),
        closed_by=row.closed_by,
        reopened_at=rfc3339(row.reopened_at) if row.reopened_at else None,
        reopened_by=row.reopened_by,
        reason=row.reopen_reason,
    )


def _row(row: Any) -> CloseRow:
    return CloseRow(
        template_id=str(row.template_id),
        template_name=row.template_name,
        currency=row.currency,
        issued_count=row.issued_count,
        issued_amount=row.issued_minor,
        redeemed_count=row.redeemed_count,
        redeemed_amount=row.redeemed_minor,
        returned_count=row.returned_count,
        returned_amount=row.returned_minor,
        expired_count=row.expired_count,
        expired_amount=row.expired_minor,
        adjusted_amount=row.adjusted_minor,
        expense_net=row.expense_minor,
    )
