"""``coupon_transfer``: which coupon a given away one has become."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class CouponTransfer(Base):
    """One row a transfer: the coupon given away, its receiver, and the receiver's coupon."""

    __tablename__ = "coupon_transfer"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    coupon_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    to_user_id: Mapped[str]
    to_coupon_id: Mapped[int]
    at: Mapped[datetime]

    __table_args__ = ({"postgresql_partition_by": "HASH (user_id)"},)
