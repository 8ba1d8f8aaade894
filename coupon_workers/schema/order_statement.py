"""``order_statement``, ``order_statement_row``: what the order centre says of a day's orders (DESIGN 10, API.md)."""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import CheckConstraint, Date, Integer, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

STATEMENT_STATUSES = ("paid", "closed", "partly_refunded", "refunded")


class OrderStatement(Base):
    """One row a statement. A day's next one has the next ``revision`` and stands in for the one before, which is kept
    for a while: what was found as of a moment before is found again. ``fingerprint`` is the SHA-256 of the file."""

    __tablename__ = "order_statement"

    business_date: Mapped[date] = mapped_column(Date, primary_key=True)
    revision: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    row_count: Mapped[int]
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    received_by: Mapped[str]
    received_at: Mapped[datetime]

    __table_args__ = (
        CheckConstraint("revision >= 1", name="revision"),
        CheckConstraint("row_count >= 0", name="rows"),
    )


class OrderStatementRow(Base):
    """One row an order: what was paid for it, and what coupons took off, before any refund. ``line_no`` is the line of
    the file."""

    __tablename__ = "order_statement_row"

    business_date: Mapped[date] = mapped_column(Date, primary_key=True)
    revision: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    user_id: Mapped[str] = mapped_column(primary_key=True)
    order_no: Mapped[str] = mapped_column(primary_key=True)
    line_no: Mapped[int]
    status: Mapped[str]
    paid_minor: Mapped[int]
    discount_minor: Mapped[int]
    currency: Mapped[str]

    __table_args__ = (
        one_of("status", STATEMENT_STATUSES, "status"),
        CheckConstraint("paid_minor >= 0 AND discount_minor >= 0", name="not_negative"),
    )
