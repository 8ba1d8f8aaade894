"""``coupon_order``: an order that holds or has used coupons, as it was when they were locked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, Integer, LargeBinary, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

ORDER_STATUSES = ("locked", "released", "redeemed")


class CouponOrder(Base):
    """One row an order of a user that has locked or redeemed coupons; one without coupons is not known here.

    ``lines`` and the amounts are frozen at lock; ``fingerprint`` is the SHA-256 of what was asked. A released order
    may lock again: ``lock_no`` counts its locks, and the uses of the present one bear it. ``locked_until`` stays when
    the lock is over: it says how late a payment was. ``refunded_minor`` is the sum of the order's refunds.
    ``fully_returned_at``: nothing is left to return.
    """

    __tablename__ = "coupon_order"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    order_no: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]
    lock_no: Mapped[int] = mapped_column(Integer, server_default=text("1"))
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    currency: Mapped[str]
    channel: Mapped[str | None]
    lines: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    subtotal_minor: Mapped[int]
    discount_minor: Mapped[int]
    payable_minor: Mapped[int]
    refunded_minor: Mapped[int] = mapped_column(server_default=text("0"))
    refund_count: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    locked_at: Mapped[datetime | None]
    locked_until: Mapped[datetime | None]
    released_at: Mapped[datetime | None]
    release_reason: Mapped[str | None]
    payment_no: Mapped[str | None]
    paid_at: Mapped[datetime | None]
    redeemed_at: Mapped[datetime | None]
    fully_returned_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (
        one_of("status", ORDER_STATUSES, "status"),
        CheckConstraint("discount_minor >= 0 AND payable_minor >= 0", name="amounts_not_negative"),
        CheckConstraint("payable_minor = subtotal_minor - discount_minor", name="payable"),
        CheckConstraint("refunded_minor BETWEEN 0 AND payable_minor", name="refunded"),
        CheckConstraint("(status = 'locked') <= (locked_until IS NOT NULL)", name="lock_has_deadline"),
        CheckConstraint(
            "(status = 'redeemed') = (payment_no IS NOT NULL) AND (status = 'redeemed') = (redeemed_at IS NOT NULL)",
            name="redeemed_is_paid",
        ),
        CheckConstraint("(refund_count > 0) <= (status = 'redeemed')", name="refunds_are_of_paid"),
        Index("ix_coupon_order_deadline", "locked_until", postgresql_where=text("status = 'locked'")),
        {"postgresql_partition_by": "HASH (user_id)"},
    )
