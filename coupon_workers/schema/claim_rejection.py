"""``claim_rejection``: claims that were accepted and could not be issued, with their reason, for ever readable."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class ClaimRejection(Base):
    """One row a rejected claim. ``reason`` is a word of ```claiming/outcome.py```."""

    __tablename__ = "claim_rejection"

    claim_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[str]
    template_id: Mapped[int]
    request_id: Mapped[str]
    claim_seq: Mapped[int]
    reason: Mapped[str]
    claimed_at: Mapped[datetime]
    rejected_at: Mapped[datetime] = mapped_column(server_default=text("now()"))

    __table_args__ = (Index("ix_claim_rejection_request", "template_id", "user_id", "request_id"),)


class ClaimSetAside(Base):
    """``claim_set_aside``: entries of a pending stream that no claim can be read from, kept with the reason."""

    __tablename__ = "claim_set_aside"

    template_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    bucket: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    entry_id: Mapped[str] = mapped_column(primary_key=True)
    payload: Mapped[str]
    reason: Mapped[str]
    at: Mapped[datetime] = mapped_column(server_default=text("now()"))

    __table_args__ = (Index("ix_claim_set_aside_at", "at"),)
