"""``coupon_archive``, ``coupon_flow_archive``: coupons that ended long ago, with their history, out of everybody's way.

Plain tables: nothing but the archiver writes here, and whoever reads names the user or the coupon. Both keys begin with
``user_id``, as those of ``coupon`` do.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of
from coupon_workers.schema.coupon import COUPON_SOURCES

ENDED_STATUSES = ("expired", "revoked", "transferred")
"""The statuses that a coupon never leaves. A redeemed one may come back."""


class CouponArchive(Base):
    """One row a coupon, as it stood in ``coupon`` (schema/coupon.py), and when it was moved."""

    __tablename__ = "coupon_archive"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    coupon_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    template_id: Mapped[int]
    batch_no: Mapped[str]
    claim_seq: Mapped[int]
    request_id: Mapped[str]
    status: Mapped[str]
    version: Mapped[int] = mapped_column(Integer)
    face_value_minor: Mapped[int | None]
    template_version: Mapped[int]
    valid_from: Mapped[datetime]
    valid_to: Mapped[datetime]
    order_no: Mapped[str | None]
    source: Mapped[str]
    channel: Mapped[str | None]
    claimed_at: Mapped[datetime]
    issued_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    archived_at: Mapped[datetime]

    __table_args__ = (
        one_of("status", ENDED_STATUSES, "status"),
        one_of("source", COUPON_SOURCES, "source"),
        CheckConstraint("order_no IS NULL", name="on_no_order"),
        Index("ix_coupon_archive_coupon_id", "coupon_id"),
    )


class CouponFlowArchive(Base):
    """One row a step in the life of an archived coupon, as it stood in ``coupon_flow`` (schema/coupon_flow.py)."""

    __tablename__ = "coupon_flow_archive"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    coupon_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    flow_no: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    action: Mapped[str]
    from_status: Mapped[str | None]
    to_status: Mapped[str]
    order_no: Mapped[str | None]
    operator: Mapped[str]
    request_id: Mapped[str | None]
    at: Mapped[datetime]
    archived_at: Mapped[datetime]

    __table_args__ = (
        # Whoever closes an old day anew passes by the blocks of other years.
        Index(
            "ix_coupon_flow_archive_at",
            "at",
            postgresql_using="brin",
            postgresql_with={"pages_per_range": 32, "autosummarize": "on"},
        ),
    )


class ArchivePass(Base):
    """How far the archiver has come with a template's coupons: one row a template it has looked at.

    ``cursor``: coupons up to this number have been looked at in the pass at hand; 0 between passes. ``oldest_left`` is
    the earliest last change among those that it left there and that may be moved later. ``due_from``: of what the last
    whole pass has left, nothing can be moved before it is this old.
    """

    __tablename__ = "archive_pass"

    template_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    cursor: Mapped[int]
    oldest_left: Mapped[datetime | None]
    due_from: Mapped[datetime | None]
    updated_at: Mapped[datetime]

    __table_args__ = (CheckConstraint("cursor > 0 OR due_from IS NOT NULL", name="looked_at"),)
