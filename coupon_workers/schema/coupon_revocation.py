"""``coupon_revocation``: a recall of a template's unused coupons, and how far it has come (API.md, Templates)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, Integer, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

REVOCATION_STATUSES = ("running", "done")


class CouponRevocation(Base):
    """One row a recall; a template has one that runs, at most. It means coupons issued until ``created_at``.

    It passes through the coupons in their order, ``cursor`` being the last one looked at, again and again until a pass
    (``pass_no``) finds none to revoke: ``found_count``, ``moved_count`` and ``locked_count`` are of the present pass.
    """

    __tablename__ = "coupon_revocation"

    revocation_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    template_id: Mapped[int]
    status: Mapped[str] = mapped_column(server_default=text("'running'"))
    reason: Mapped[str]
    asked_by: Mapped[str]
    cursor: Mapped[int] = mapped_column(server_default=text("0"))
    pass_no: Mapped[int] = mapped_column(Integer, server_default=text("1"))
    found_count: Mapped[int] = mapped_column(server_default=text("0"))
    moved_count: Mapped[int] = mapped_column(server_default=text("0"))
    locked_count: Mapped[int] = mapped_column(server_default=text("0"))
    revoked_count: Mapped[int] = mapped_column(server_default=text("0"))
    restocked_count: Mapped[int] = mapped_column(server_default=text("0"))
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]

    __table_args__ = (
        one_of("status", REVOCATION_STATUSES, "status"),
        CheckConstraint("(status = 'done') = (finished_at IS NOT NULL)", name="finished"),
        CheckConstraint("restocked_count IN (0, revoked_count)", name="restocked"),
        Index("uq_coupon_revocation_running", "template_id", unique=True, postgresql_where=text("status = 'running'")),
        Index("ix_coupon_revocation_template", "template_id", "revocation_id"),
        Index("ix_coupon_revocation_open", "updated_at", postgresql_where=text("status = 'running'")),
    )
