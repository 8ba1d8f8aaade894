"""``coupon_flow``: what happened to a coupon, append-only. Partitioned like ``coupon``."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, Integer, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of
from coupon_workers.schema.coupon import COUPON_STATUSES

FLOW_ACTIONS = ("issue", "lock", "redeem", "release", "refund", "expire", "revoke", "transfer")


class CouponFlow(Base):
    """One row a transition, written in the transaction of the change. ``flow_no`` is the coupon's ``version`` after
    the change, so that two changes of one version cannot both be written. ``operator`` says who or what triggered it.
    """

    __tablename__ = "coupon_flow"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    coupon_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    flow_no: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    action: Mapped[str]
    from_status: Mapped[str | None]
    to_status: Mapped[str]
    order_no: Mapped[str | None]
    operator: Mapped[str]
    request_id: Mapped[str | None]
    at: Mapped[datetime] = mapped_column(server_default=text("now()"))

    __table_args__ = (
        one_of("action", FLOW_ACTIONS, "action"),
        one_of("from_status", COUPON_STATUSES, "from_status"),
        one_of("to_status", COUPON_STATUSES, "to_status"),
        CheckConstraint("(flow_no = 1) = (from_status IS NULL)", name="first_has_no_from"),
        # A block index: rows come in the order of their instants, and claims pay next to nothing for it.
        Index(
            "ix_coupon_flow_at",
            "at",
            postgresql_using="brin",
            postgresql_with={"pages_per_range": 32, "autosummarize": "on"},
        ),
        {"postgresql_partition_by": "HASH (user_id)"},
    )
