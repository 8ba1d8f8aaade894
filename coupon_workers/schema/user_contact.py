"""``user_contact``: where a user is reached, by channel."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class UserContact(Base):
    """One row an address of a user: mail for the channel ``smtp``, a telephone number for ``sms``."""

    __tablename__ = "user_contact"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    channel: Mapped[str] = mapped_column(primary_key=True)
    address: Mapped[str]
    updated_at: Mapped[datetime]
