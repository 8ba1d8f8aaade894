"""Ledger, daily closes and audit log, as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class LedgerAnswer(TypedDict):
    """A booking: `amount`, in minor units of `currency`, to the debit of one account and the credit of another."""

    entry_id: str
    date: str
    template_id: str
    user_id: str
    order_no: str
    coupon_no: str
    kind: Literal["redeem", "refund", "adjustment"]
    reference: str
    debit_account: Literal["coupon_expense", "order_discount", "adjustment"]
    credit_account: Literal["coupon_expense", "order_discount", "adjustment"]
    amount: int
    currency: str
    at: str
    operator: str | None
    reason: str | None


class Sums(TypedDict):
    """Coupons, and amounts in minor units of `currency`; `expense_net` = redeemed − returned + adjusted."""

    currency: str
    issued_count: int
    issued_amount: int | None
    redeemed_count: int
    redeemed_amount: int
    returned_count: int
    returned_amount: int
    expired_count: int
    expired_amount: int | None
    adjusted_amount: int
    expense_net: int


class CloseRow(Sums):
    """What a template's coupons did and cost on the day. `template_name` as it was at closing."""

    template_id: str
    template_name: str


class Revision(TypedDict):
    """One closing of the day, and the trace of who opened it again."""

    revision: int
    status: Literal["closed", "reopened"]
    closed_at: str
    closed_by: str
    reopened_at: str | None
    reopened_by: str | None
    reason: str | None


class DayCost(TypedDict):
    """What a day cost in one currency; `expense_net` in minor units."""

    currency: str
    issued_count: int
    redeemed_count: int
    expense_net: int


class ClosedDay(Revision):
    """The latest closing of a day, without its rows."""

    date: str
    costs: list[DayCost]


class DayClose(Revision):
    """The latest closing of a day, and all there were, oldest first."""

    date: str
    rows: list[CloseRow]
    totals: list[Sums]
    revisions: list[Revision]


class AuditEntry(TypedDict):
    """A row of the log."""

    audit_id: str
    at: str
    key_id: str
    key_name: str | None
    request_id: str | None
    action: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
