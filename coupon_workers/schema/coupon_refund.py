"""``coupon_refund``: the refunds of orders with coupons, each once by its number."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Integer, LargeBinary, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class CouponRefund(Base):
    """One row a refund. ``refund_seq`` counts the refunds of an order from 1: in this order they lead to what is left.

    ``fingerprint`` is the SHA-256 of what was asked, ``returned`` ``[{"line_id", "quantity"}]`` what went back,
    ``coupons`` ``[{"coupon_no", "status", "discount_reversed"}]`` what became of each.
    """

    __tablename__ = "coupon_refund"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    refund_no: Mapped[str] = mapped_column(primary_key=True)
    order_no: Mapped[str]
    refund_seq: Mapped[int] = mapped_column(Integer)
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    refund_minor: Mapped[int]
    discount_reversed_minor: Mapped[int]
    returned: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    coupons: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    at: Mapped[datetime]

    __table_args__ = (
        UniqueConstraint("user_id", "order_no", "refund_seq", name="uq_coupon_refund_seq"),
        CheckConstraint("refund_minor >= 0 AND discount_reversed_minor >= 0", name="not_negative"),
        {"postgresql_partition_by": "HASH (user_id)"},
    )
