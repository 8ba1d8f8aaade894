"""The ledger, read: bookings of a day, of a template, of both or of all (API.md, Back office)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, Field
from sqlalchemy import Select, select, tuple_

from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.schema import LedgerEntry

Account = Literal["coupon_expense", "order_discount", "adjustment"]

Position = tuple[date, int, int]
"""Where a booking stands in the order of the read-out: business day, template, entry."""


class LedgerAnswer(BaseModel):
    """A booking: ``amount``, in minor units of ``currency``, to the debit of one account and the credit of another."""

    entry_id: str
    date: str = Field(description="the local day of the template")
    template_id: str
    user_id: str
    order_no: str
    coupon_no: str
    kind: Literal["redeem", "refund", "adjustment"]
    reference: str = Field(description="the payment's or refund's number, or the adjustment's own")
    debit_account: Account
    credit_account: Account
    amount: int
    currency: str
    at: str
    operator: str | None = Field(description="who adjusted")
    reason: str | None = Field(description="why")

    @property
    def position(self) -> Position:
        """Where it stands."""
        return date.fromisoformat(self.date), int(self.template_id), int(self.entry_id)


def read_ledger(
    services: Services,
    *,
    limit: int,
    day: date | None = None,
    template_id: int | None = None,
    before: Position | None = None,
) -> list[LedgerAnswer]:
    """The ``limit`` bookings before a position: the latest day first, in it by template, the newest first.

    Raises ``StoreUnavailable``.
    """
    with transaction(services.engine) as connection:
        return [
            ledger_answer(row) for row in connection.execute(_wanted(day, template_id, before).limit(limit)).mappings()
        ]


def _wanted(day: date | None, template_id: int | None, before: Position | None) -> Select[Any]:
    """What is fixed is left out of the order, so that an index that begins with it serves the rest in order."""
    wanted = select(LedgerEntry.__table__)
    fixed = (day, template_id, None)
    columns = (LedgerEntry.business_date, LedgerEntry.template_id, LedgerEntry.entry_id)
    for column, value in zip(columns, fixed, strict=True):
        if value is not None:
            wanted = wanted.where(column == value)
    free = [number for number, value in enumerate(fixed) if value is None]
    if before is not None:
        wanted = wanted.where(tuple_(*(columns[n] for n in free)) < tuple_(*(before[n] for n in free)))
    return wanted.order_by(*(columns[n].desc() for n in free))


def ledger_answer(row: Mapping[Any, Any]) -> LedgerAnswer:
    """A row of ``ledger_entry`` as it is shown."""
    return LedgerAnswer(
        entry_id=str(row["entry_id"]),
        date=row["business_date"].isoformat(),
        template_id=str(row["template_id"]),
        user_id=row["user_id"],
        order_no=row["order_no"],
        coupon_no=str(row["coupon_id"]),
        kind=row["kind"],
        reference=row["reference"],
        debit_account=row["debit_account"],
        credit_account=row["credit_account"],
        amount=row["amount_minor"],
        currency=row["currency"],
        at=rfc3339(row["at"]),
        operator=row["operator"],
        reason=row["reason"],
    )
