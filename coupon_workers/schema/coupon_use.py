"""``coupon_use``: a coupon on an order, with its discount down to the lines."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, Index, Integer, SmallInteger, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

USE_STATES = ("locked", "redeemed", "released", "returned")


class CouponUse(Base):
    """One row an order and coupon. A coupon has one live use at most: locked or redeemed.

    ``lock_no`` is the order's lock it belongs to; a coupon of an earlier one stays as it was released. ``position`` is
    the coupon's turn among those of the order. ``allocations`` is ``[{"line_id", "amount"}]`` with every line the
    coupon is for; they sum to ``discount_minor``. ``reversed_minor`` is what refunds took back of it.
    """

    __tablename__ = "coupon_use"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    order_no: Mapped[str] = mapped_column(primary_key=True)
    coupon_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    template_id: Mapped[int]
    lock_no: Mapped[int] = mapped_column(Integer, server_default=text("1"))
    state: Mapped[str]
    position: Mapped[int] = mapped_column(SmallInteger)
    discount_minor: Mapped[int]
    allocations: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    reversed_minor: Mapped[int] = mapped_column(server_default=text("0"))

    __table_args__ = (
        one_of("state", USE_STATES, "state"),
        CheckConstraint("discount_minor > 0", name="discount"),
        CheckConstraint("reversed_minor BETWEEN 0 AND discount_minor", name="reversed"),
        Index(
            "uq_coupon_use_live",
            "user_id",
            "coupon_id",
            unique=True,
            postgresql_where=text("state IN ('locked', 'redeemed')"),
        ),
        {"postgresql_partition_by": "HASH (user_id)"},
    )
