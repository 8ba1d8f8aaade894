"""``ledger_entry``: what coupons cost, booked from one account to another (DESIGN 10)."""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import CheckConstraint, Date, Identity, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

ENTRY_KINDS = ("redeem", "refund", "adjustment")
ACCOUNTS = ("coupon_expense", "order_discount", "adjustment")


class LedgerEntry(Base):
    """One row a booking: ``amount_minor`` on the debit of one account and on the credit of another, so that the ledger
    balances by its shape. Append-only.

    ``business_date`` is the local day of the template's time zone. ``reference`` is the payment's or refund's number,
    or that of an adjustment; with it an effect is booked once. ``operator`` and ``reason`` say who adjusted, and why.
    """

    __tablename__ = "ledger_entry"

    entry_id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    user_id: Mapped[str]
    order_no: Mapped[str]
    coupon_id: Mapped[int]
    template_id: Mapped[int]
    kind: Mapped[str]
    reference: Mapped[str]
    debit_account: Mapped[str]
    credit_account: Mapped[str]
    amount_minor: Mapped[int]
    currency: Mapped[str]
    business_date: Mapped[date] = mapped_column(Date)
    at: Mapped[datetime]
    operator: Mapped[str | None]
    reason: Mapped[str | None]

    __table_args__ = (
        UniqueConstraint("user_id", "order_no", "coupon_id", "kind", "reference", name="uq_ledger_entry_effect"),
        one_of("kind", ENTRY_KINDS, "kind"),
        one_of("debit_account", ACCOUNTS, "debit_account"),
        one_of("credit_account", ACCOUNTS, "credit_account"),
        CheckConstraint("debit_account <> credit_account", name="two_accounts"),
        CheckConstraint("amount_minor > 0", name="amount"),
        CheckConstraint(
            "(kind = 'adjustment') = (operator IS NOT NULL) AND (kind = 'adjustment') = (reason IS NOT NULL)",
            name="traced",
        ),
        Index("uq_ledger_entry_adjustment", "reference", unique=True, postgresql_where=text("kind = 'adjustment'")),
        Index("ix_ledger_entry_day", "business_date", "template_id", "entry_id"),
        Index("ix_ledger_entry_template", "template_id", "business_date", "entry_id"),
    )
