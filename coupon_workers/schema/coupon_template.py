"""``coupon_template``: the plan of a coupon, what, how many and when (API.md, Templates)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, SmallInteger, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

TEMPLATE_STATUSES = (
    "draft",
    "pending_approval",
    "scheduled",
    "active",
    "paused",
    "ended",
    "offline",
    "archived",
)
COUPON_TYPES = ("amount_off", "percent_off", "cash", "random_amount")


class CouponTemplate(Base):
    """One row a template. ``issued_quantity`` moves only by ``issued + n <= total``; the CHECK is the last guard.

    Coupon rows that are an issue of their own are ``issued_quantity`` + ``restocked_quantity``: units of revoked
    coupons that went back to the stock, and may be issued again. ``changed_by`` is the key that changed it last.

    ``reserved_quantity`` is set aside and not issued yet, for batches, codes, and ``held_quantity`` of it for claims
    that are held for review: these are units that claims have taken. ``granted_quantity`` was issued out of what
    was set aside: claims may take the total without both. ``version`` rises by one with every change and orders the
    changes on their way to Redis. ``pause_epoch`` rises with every pause and offline: a claim accepted under an
    older epoch is rejected when it is settled. ``bucket_count`` is 1 until stock moves between buckets: then a
    sold-out bucket is not a sold-out template. Of what was issued ``archived_quantity`` lies in the archive, and
    ``archived_granted_quantity`` of what was granted: nobody has to count the archive.
    """

    __tablename__ = "coupon_template"

    template_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    template_no: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    type: Mapped[str]
    currency: Mapped[str]
    amount_minor: Mapped[int | None]
    percent_off_bp: Mapped[int | None]
    max_discount_minor: Mapped[int | None]
    pool: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    threshold_minor: Mapped[int]
    total_quantity: Mapped[int]
    issued_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    reserved_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    held_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    granted_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    rejected_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    archived_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    archived_granted_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    restocked_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    per_user_limit: Mapped[int | None]
    per_user_daily_limit: Mapped[int | None]
    claim_start: Mapped[datetime]
    claim_end: Mapped[datetime]
    validity: Mapped[dict[str, Any]] = mapped_column(JSONB)
    timezone: Mapped[str]
    scope: Mapped[dict[str, Any]] = mapped_column(JSONB)
    stacking: Mapped[dict[str, Any]] = mapped_column(JSONB)
    refund: Mapped[dict[str, Any]] = mapped_column(JSONB)
    transferable: Mapped[bool]
    restock_on_revoke: Mapped[bool]
    notify: Mapped[bool]
    channels_claim: Mapped[list[str]] = mapped_column(JSONB)
    risk_policy: Mapped[str | None]
    approval_required: Mapped[bool | None]
    status: Mapped[str] = mapped_column(server_default=text("'draft'"))
    version: Mapped[int] = mapped_column(server_default=text("1"))
    pause_epoch: Mapped[int] = mapped_column(server_default=text("0"))
    bucket_count: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"))
    created_by: Mapped[str | None]
    changed_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"))
    updated_at: Mapped[datetime] = mapped_column(server_default=text("now()"))

    __table_args__ = (
        one_of("status", TEMPLATE_STATUSES, "status"),
        one_of("type", COUPON_TYPES, "type"),
        CheckConstraint("total_quantity >= 1", name="total_positive"),
        CheckConstraint("issued_quantity >= 0 AND reserved_quantity >= 0", name="books_not_negative"),
        CheckConstraint("restocked_quantity >= 0", name="restocked"),
        CheckConstraint("held_quantity BETWEEN 0 AND reserved_quantity", name="held"),
        CheckConstraint("granted_quantity BETWEEN 0 AND issued_quantity + restocked_quantity", name="granted"),
        CheckConstraint("issued_quantity + reserved_quantity <= total_quantity", name="never_over_issued"),
        CheckConstraint("archived_quantity BETWEEN 0 AND issued_quantity + restocked_quantity", name="archived"),
        CheckConstraint(
            "archived_granted_quantity BETWEEN 0 AND archived_quantity"
            " AND archived_granted_quantity <= granted_quantity",
            name="archived_granted",
        ),
        CheckConstraint("claim_start < claim_end", name="claim_window"),
        CheckConstraint("per_user_limit >= 1", name="per_user_limit"),
        CheckConstraint("per_user_daily_limit >= 1", name="per_user_daily_limit"),
        CheckConstraint("threshold_minor >= 0", name="threshold"),
        CheckConstraint("amount_minor > 0", name="amount"),
        CheckConstraint("percent_off_bp BETWEEN 1 AND 10000", name="percent_off"),
        CheckConstraint("max_discount_minor > 0", name="max_discount"),
        CheckConstraint("bucket_count = 1", name="bucket_count"),
        CheckConstraint(
            "CASE type WHEN 'percent_off' THEN percent_off_bp IS NOT NULL AND amount_minor IS NULL"
            " WHEN 'random_amount' THEN pool IS NOT NULL AND amount_minor IS NULL"
            " ELSE amount_minor IS NOT NULL AND percent_off_bp IS NULL END",
            name="value_of_type",
        ),
        Index("ix_coupon_template_status", "status", "template_id"),
        Index(
            "ix_coupon_template_risk", "risk_policy", "template_id", postgresql_where=text("risk_policy IS NOT NULL")
        ),
    )
