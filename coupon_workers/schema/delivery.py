"""``delivery``, its attempts, and the targets that are left alone for a while."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Identity, Index, Integer, SmallInteger, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

DELIVERY_STATES = ("pending", "delivered", "dead", "discarded")

_PENDING = text("state = 'pending'")


class Delivery(Base):
    """One row an event for one target: ``webhook:<id>``, or the name of a channel to users.

    ``payload`` is the ``data`` of the message. ``attempts`` counts all, ``step`` those since the last replay: the place
    in the schedule of back-off. Whoever sends it holds it until ``leased_until``, by the database's clock.
    """

    __tablename__ = "delivery"

    delivery_id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    target: Mapped[str]
    webhook_id: Mapped[int | None]
    outbox_id: Mapped[int]
    event: Mapped[str]
    user_id: Mapped[str]
    template_id: Mapped[int]
    coupon_id: Mapped[int]
    payload: Mapped[dict[str, object]] = mapped_column(JSONB)
    state: Mapped[str] = mapped_column(server_default=text("'pending'"))
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    step: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    next_attempt_at: Mapped[datetime]
    leased_until: Mapped[datetime | None]
    last_status: Mapped[int | None] = mapped_column(Integer)
    last_error: Mapped[str | None]
    occurred_at: Mapped[datetime]
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("outbox_id", "target", name="uq_delivery_routed"),
        one_of("state", DELIVERY_STATES, "state"),
        CheckConstraint("(state = 'pending') = (finished_at IS NULL)", name="finished"),
        Index("ix_delivery_due", "target", "next_attempt_at", "outbox_id", postgresql_where=_PENDING),
        # Whether an earlier event of the same coupon is still on its way.
        Index("ix_delivery_order", "target", "coupon_id", "outbox_id", postgresql_where=_PENDING),
        Index("ix_delivery_webhook", "webhook_id", "delivery_id", postgresql_where=text("webhook_id IS NOT NULL")),
        Index("ix_delivery_dead", "target", postgresql_where=text("state = 'dead'")),
        Index("ix_delivery_created_at", "created_at"),
    )


class DeliveryAttempt(Base):
    """One row an attempt. ``status`` is the HTTP status or the SMTP code, if there was an answer."""

    __tablename__ = "delivery_attempt"

    delivery_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    attempt_no: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    elapsed_ms: Mapped[int] = mapped_column(Integer)
    status: Mapped[int | None] = mapped_column(Integer)
    error: Mapped[str | None]


class DeliveryPause(Base):
    """One row a target that could not be reached: how often in succession, and until when it is left alone."""

    __tablename__ = "delivery_pause"

    target: Mapped[str] = mapped_column(primary_key=True)
    failures: Mapped[int] = mapped_column(Integer)
    paused_until: Mapped[datetime]
