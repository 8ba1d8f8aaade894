"""``template_approval``: what was asked for and needs a second person, and what became of it (API.md, Templates)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Identity, Index, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

APPROVAL_KINDS = ("publication", "change")
APPROVAL_STATES = ("pending", "approved", "rejected", "withdrawn")


class TemplateApproval(Base):
    """One row a request; a template has one that is pending, at most.

    ``after`` has the fields of a change as they are to be, ``before`` as they were when it was asked for, or applied.
    Costs are minor units at worst, NULL without a bound, of the same moment. ``reasons`` say why two are
    needed.
    """

    __tablename__ = "template_approval"

    approval_id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    template_id: Mapped[int]
    kind: Mapped[str]
    state: Mapped[str] = mapped_column(server_default=text("'pending'"))
    reasons: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    before: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    after: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    cost_before: Mapped[int | None]
    cost_after: Mapped[int | None]
    asked_by: Mapped[str | None]
    asked_at: Mapped[datetime]
    decided_by: Mapped[str | None]
    decided_at: Mapped[datetime | None]
    comment: Mapped[str | None]

    __table_args__ = (
        one_of("kind", APPROVAL_KINDS, "kind"),
        one_of("state", APPROVAL_STATES, "state"),
        CheckConstraint(
            "(kind = 'change') = (after IS NOT NULL) AND (kind = 'change') = (before IS NOT NULL)", name="change"
        ),
        CheckConstraint("(state = 'pending') = (decided_at IS NULL)", name="decided"),
        CheckConstraint("(state = 'rejected') <= (comment IS NOT NULL)", name="said_why"),
        Index("uq_template_approval_pending", "template_id", unique=True, postgresql_where=text("state = 'pending'")),
        Index("ix_template_approval_template", "template_id", "approval_id"),
        Index("ix_template_approval_state", "state", "approval_id"),
    )
