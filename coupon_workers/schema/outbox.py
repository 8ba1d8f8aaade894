"""``outbox``: events to be told to users and webhooks, written in the transaction of the change they tell of."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

OUTBOX_EVENTS = (
    "coupon.issued",
    "claim.rejected",
    "coupon.locked",
    "coupon.redeemed",
    "coupon.released",
    "coupon.returned",
    "coupon.expired",
    "coupon.expiring",
    "coupon.transferred",
    "coupon.revoked",
    "batch.finished",
    "finding.opened",
)


class Outbox(Base):
    """One row an event, in order of ``outbox_id``. The message is made from its subject when it is delivered."""

    __tablename__ = "outbox"

    outbox_id: Mapped[int] = mapped_column(primary_key=True)
    event: Mapped[str]
    user_id: Mapped[str]
    template_id: Mapped[int]
    coupon_id: Mapped[int]
    detail: Mapped[dict[str, object] | None] = mapped_column(JSONB(none_as_null=True))
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"))
    delivered_at: Mapped[datetime | None]

    __table_args__ = (
        one_of("event", OUTBOX_EVENTS, "event"),
        Index("ix_outbox_undelivered", "outbox_id", postgresql_where=text("delivered_at IS NULL")),
        # What has been passed on for long is forgotten (notify/retention.py).
        Index("ix_outbox_delivered", "delivered_at", postgresql_where=text("delivered_at IS NOT NULL")),
        # The sweep that warns of a coupon's end may pass twice; the user is warned once.
        Index(
            "uq_outbox_expiring",
            "user_id",
            "coupon_id",
            unique=True,
            postgresql_where=text("event = 'coupon.expiring'"),
        ),
    )
