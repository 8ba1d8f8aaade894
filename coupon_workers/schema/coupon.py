"""``coupon``: one user's instance of a template. Partitioned by hash of ``user_id`` (DESIGN 5)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, Integer, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

COUPON_STATUSES = ("unused", "locked", "redeemed", "expired", "revoked", "transferred")
COUPON_SOURCES = ("claim", "batch", "code", "lottery", "transfer", "manual")


class Coupon(Base):
    """One row a coupon. Every unique key contains ``user_id``, so that it holds inside one partition.

    ``batch_no`` is the empty text for claims. ``claim_seq`` is allotted in the claim script: rising per user and
    template, never reused, not the count. ``version`` counts the coupon's transitions, its flow rows; an issued
    coupon has 1. ``claimed_at`` is the gate's clock (Redis) at acceptance, ``issued_at`` the database's at settling.
    """

    __tablename__ = "coupon"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    coupon_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    template_id: Mapped[int]
    batch_no: Mapped[str] = mapped_column(server_default=text("''"))
    claim_seq: Mapped[int]
    request_id: Mapped[str]
    status: Mapped[str] = mapped_column(server_default=text("'unused'"))
    version: Mapped[int] = mapped_column(Integer, server_default=text("1"))
    face_value_minor: Mapped[int | None]
    template_version: Mapped[int]
    valid_from: Mapped[datetime]
    valid_to: Mapped[datetime]
    order_no: Mapped[str | None]
    source: Mapped[str]
    channel: Mapped[str | None]
    claimed_at: Mapped[datetime]
    issued_at: Mapped[datetime] = mapped_column(server_default=text("now()"))
    updated_at: Mapped[datetime] = mapped_column(server_default=text("now()"))

    __table_args__ = (
        UniqueConstraint("user_id", "template_id", "batch_no", "claim_seq", name="uq_coupon_claim_seq"),
        UniqueConstraint("user_id", "template_id", "request_id", name="uq_coupon_request"),
        one_of("status", COUPON_STATUSES, "status"),
        one_of("source", COUPON_SOURCES, "source"),
        CheckConstraint("valid_from < valid_to", name="validity"),
        CheckConstraint("(status IN ('locked', 'redeemed')) <= (order_no IS NOT NULL)", name="order_no"),
        Index("ix_coupon_coupon_id", "coupon_id"),
        Index("ix_coupon_template", "template_id", "coupon_id"),
        Index("ix_coupon_unused_end", "valid_to", postgresql_where=text("status = 'unused'")),
        {"postgresql_partition_by": "HASH (user_id)"},
    )
