"""``risk_review``: claims that are held until somebody decides; ``risk_verdict``: what rules said (docs/risk.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Identity, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

VERDICTS = ("allow", "review", "reject")
REVIEW_STATES = ("held", "approved", "rejected", "expired")


class RiskReview(Base):
    """One row a claim that was held, with all that settles it later. Its unit is among the template's
    ``held_quantity``, and so among its ``reserved_quantity``, for as long as ``state`` is "held".

    ``reason`` is why it was rejected in the end. ``untold`` is what the gate has yet to hear of its end.
    """

    __tablename__ = "risk_review"

    claim_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    template_id: Mapped[int]
    user_id: Mapped[str]
    request_id: Mapped[str]
    claim_seq: Mapped[int]
    day: Mapped[str]
    epoch: Mapped[int]
    channel: Mapped[str | None]
    face_value_minor: Mapped[int | None]
    claimed_at: Mapped[datetime]
    device_id: Mapped[str | None]
    ip: Mapped[str | None]
    address_hash: Mapped[str | None]
    rule: Mapped[str]
    state: Mapped[str] = mapped_column(server_default=text("'held'"))
    reason: Mapped[str | None]
    held_at: Mapped[datetime]
    deadline_at: Mapped[datetime]
    decided_by: Mapped[str | None]
    decided_at: Mapped[datetime | None]
    comment: Mapped[str | None]
    untold: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))

    __table_args__ = (
        one_of("state", REVIEW_STATES, "state"),
        CheckConstraint("(state = 'held') = (decided_at IS NULL)", name="decided"),
        CheckConstraint("(state IN ('rejected', 'expired')) <= (reason IS NOT NULL)", name="reason"),
        Index("ix_risk_review_overdue", "deadline_at", postgresql_where=text("state = 'held'")),
        Index("ix_risk_review_held", "template_id", "user_id", postgresql_where=text("state = 'held'")),
        Index("ix_risk_review_state", "state", "claim_id"),
        Index("ix_risk_review_template", "template_id", "claim_id"),
        Index("ix_risk_review_untold", "claim_id", postgresql_where=text("untold IS NOT NULL")),
    )


class RiskVerdict(Base):
    """One row a rule that fired. ``source_id`` says of what: a claim's id, or the refusal's entry in the gate's log."""

    __tablename__ = "risk_verdict"

    verdict_id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    template_id: Mapped[int]
    source_id: Mapped[str]
    rule: Mapped[str]
    verdict: Mapped[str]
    shadow: Mapped[bool]
    at: Mapped[datetime]
    claim_id: Mapped[int | None]
    user_id: Mapped[str]
    device_id: Mapped[str | None]
    ip: Mapped[str | None]
    address_hash: Mapped[str | None]

    __table_args__ = (
        UniqueConstraint("template_id", "source_id", "rule", name="uq_risk_verdict_source"),
        one_of("verdict", VERDICTS, "verdict"),
        Index("ix_risk_verdict_at", "at"),
        Index("ix_risk_verdict_template", "template_id", "verdict_id"),
        Index("ix_risk_verdict_user", "user_id", "verdict_id"),
        Index("ix_risk_verdict_rule", "rule", "verdict_id"),
    )


class RiskLogLoss(Base):
    """``risk_log_loss``: refusals of a template that the gate's log had no room for."""

    __tablename__ = "risk_log_loss"

    template_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    dropped: Mapped[int]
