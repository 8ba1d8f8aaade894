"""``order_event``: what the order centre told of its orders, in whatever order it arrived."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, LargeBinary, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

EVENT_TYPES = ("paid", "closed", "refunded")
EVENT_STATES = ("waiting", "applied", "superseded", "refused")


class OrderEvent(Base):
    """One row an event, once by its id. ``waiting``: its order, or what must come before it, is not known yet.

    ``superseded``: a later event of the order was there before it. ``code`` says why it was refused or waits.
    ``tried_at`` is when it was last looked at.
    """

    __tablename__ = "order_event"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    event_id: Mapped[str] = mapped_column(primary_key=True)
    order_no: Mapped[str]
    type: Mapped[str]
    occurred_at: Mapped[datetime]
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    state: Mapped[str]
    code: Mapped[str | None]
    detail: Mapped[str | None]
    received_at: Mapped[datetime]
    tried_at: Mapped[datetime]

    __table_args__ = (
        one_of("type", EVENT_TYPES, "type"),
        one_of("state", EVENT_STATES, "state"),
        Index("ix_order_event_order", "user_id", "order_no", "occurred_at"),
        Index("ix_order_event_waiting", "tried_at", postgresql_where=text("state = 'waiting'")),
        Index(
            "ix_order_event_unknown",
            "tried_at",
            postgresql_where=text("state = 'refused' AND code = 'ORDER_NOT_FOUND'"),
        ),
        {"postgresql_partition_by": "HASH (user_id)"},
    )
