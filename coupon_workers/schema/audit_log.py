"""``audit_log``: what operators have done, kept for good. A trigger refuses to change or delete a row."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Identity, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class AuditLog(Base):
    """One row a change, written in its transaction. ``operator`` is a key's id, or says which program acted;
    ``subject`` is the kind of thing and its identity, ``template:7001``."""

    __tablename__ = "audit_log"

    audit_id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=text("now()"))
    operator: Mapped[str]
    operator_name: Mapped[str | None]
    request_id: Mapped[str | None]
    action: Mapped[str]
    subject: Mapped[str]
    before: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    after: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))

    __table_args__ = (
        Index("ix_audit_log_subject", "subject", "audit_id"),
        Index("ix_audit_log_operator", "operator", "audit_id"),
        Index("ix_audit_log_action", "action", "audit_id"),
        Index("ix_audit_log_at", "at", "audit_id"),
    )
