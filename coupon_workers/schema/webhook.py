"""``webhook``: the addresses of other systems that are told of events (API.md, Back office)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class Webhook(Base):
    """One row an endpoint. ``events`` empty: all. ``secret`` is what its messages are signed with, in the form
    ``whsec_…`` of Standard Webhooks: signing needs the key itself, so no hash will do.

    A webhook that has ended (``disabled_at``) stays for as long as its deliveries are kept.
    """

    __tablename__ = "webhook"

    webhook_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    url: Mapped[str]
    secret: Mapped[str]
    events: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    description: Mapped[str | None]
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    disabled_reason: Mapped[str | None]

    __table_args__ = (CheckConstraint("(disabled_at IS NULL) = (disabled_reason IS NULL)", name="disabled_has_reason"),)
