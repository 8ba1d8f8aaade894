"""``risk_policy``: rules by which claims are weighed, by name; lists and scores they ask for (docs/risk.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, Sequence, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

DIMENSIONS = ("device", "ip", "address", "user")

RISK_VERSION = Sequence("risk_version", metadata=Base.metadata)
"""Numbers changes of lists and scores: gates take of two the later one, in whatever order they come."""


class RiskPolicy(Base):
    """The version of a policy that is in force. ``policy`` is its body as the API gives it."""

    __tablename__ = "risk_policy"

    name: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int]
    policy: Mapped[dict[str, Any]] = mapped_column(JSONB)
    changed_by: Mapped[str | None]
    changed_at: Mapped[datetime]

    __table_args__ = (CheckConstraint("version >= 1", name="version"),)


class RiskPolicyVersion(Base):
    """``risk_policy_version``: every version there was; ``policy`` is NULL of one that took the policy away."""

    __tablename__ = "risk_policy_version"

    name: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    policy: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    changed_by: Mapped[str | None]
    changed_at: Mapped[datetime]


class RiskListEntry(Base):
    """``risk_list_entry``: who is let through or refused whatever the rules say. ``list`` "none": taken off again."""

    __tablename__ = "risk_list_entry"

    dimension: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str] = mapped_column(primary_key=True)
    list: Mapped[str]
    expires_at: Mapped[datetime | None]
    comment: Mapped[str | None]
    version: Mapped[int]
    changed_by: Mapped[str | None]
    changed_at: Mapped[datetime]

    __table_args__ = (
        one_of("dimension", DIMENSIONS, "dimension"),
        one_of("list", ("allow", "block", "none"), "list"),
        Index("ix_risk_list_entry_list", "list", "dimension", "value"),
        Index("ix_risk_list_entry_version", "version"),
    )


class RiskScore(Base):
    """``risk_score``: how risky an account is, from 0 to 1000; NULL: not known. ``due_at``: to be scored then."""

    __tablename__ = "risk_score"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    score: Mapped[int | None]
    expires_at: Mapped[datetime | None]
    version: Mapped[int]
    due_at: Mapped[datetime | None]
    changed_by: Mapped[str | None]
    changed_at: Mapped[datetime]

    __table_args__ = (
        CheckConstraint("score BETWEEN 0 AND 1000", name="score"),
        Index("ix_risk_score_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("ix_risk_score_version", "version"),
    )
