"""``daily_close``, ``daily_close_row``: the books of a business day, frozen (DESIGN 10)."""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import CheckConstraint, Date, Index, Integer, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

CLOSE_STATUSES = ("closed", "reopened")


class DailyClose(Base):
    """One row a closing of a day. A day that is closed anew has the next ``revision``; what was closed before stays,
    with the trace of who opened it again, when and why. One revision of a day is in force at most."""

    __tablename__ = "daily_close"

    business_date: Mapped[date] = mapped_column(Date, primary_key=True)
    revision: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    status: Mapped[str] = mapped_column(server_default=text("'closed'"))
    closed_by: Mapped[str]
    closed_at: Mapped[datetime]
    reopened_by: Mapped[str | None]
    reopened_at: Mapped[datetime | None]
    reopen_reason: Mapped[str | None]

    __table_args__ = (
        one_of("status", CLOSE_STATUSES, "status"),
        CheckConstraint("revision >= 1", name="revision"),
        CheckConstraint(
            "(status = 'reopened') = (num_nonnulls(reopened_by, reopened_at, reopen_reason) = 3)"
            " AND (status = 'closed') = (num_nonnulls(reopened_by, reopened_at, reopen_reason) = 0)",
            name="trace",
        ),
        Index("uq_daily_close_in_force", "business_date", unique=True, postgresql_where=text("status = 'closed'")),
    )


class DailyCloseRow(Base):
    """One row a template and currency of a closing; ``template_name`` as it was then. Never changed.

    Counts are coupons, amounts minor units. ``issued_minor`` and ``expired_minor`` are face values, NULL where coupons
    have none (``percent_off``); the others are sums of the ledger.
    """

    __tablename__ = "daily_close_row"

    business_date: Mapped[date] = mapped_column(Date, primary_key=True)
    revision: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    template_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    currency: Mapped[str] = mapped_column(primary_key=True)
    template_name: Mapped[str]
    issued_count: Mapped[int]
    issued_minor: Mapped[int | None]
    redeemed_count: Mapped[int]
    redeemed_minor: Mapped[int]
    returned_count: Mapped[int]
    returned_minor: Mapped[int]
    expired_count: Mapped[int]
    expired_minor: Mapped[int | None]
    adjusted_minor: Mapped[int]
    expense_minor: Mapped[int]

    __table_args__ = (
        CheckConstraint(
            "issued_count >= 0 AND redeemed_count >= 0 AND returned_count >= 0 AND expired_count >= 0", name="counts"
        ),
        CheckConstraint(
            "issued_minor >= 0 AND redeemed_minor >= 0 AND returned_minor >= 0 AND expired_minor >= 0", name="amounts"
        ),
        CheckConstraint("expense_minor = redeemed_minor - returned_minor + adjusted_minor", name="expense"),
    )
