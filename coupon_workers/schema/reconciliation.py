"""``recon_run``, ``recon_finding``, ``recon_run_finding``: what was compared, and what differs (DESIGN 10)."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import CheckConstraint, Date, Identity, Index, Integer, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

RECON_KINDS = ("stock", "state", "orders", "batches", "codes")
RUN_STATUSES = ("queued", "running", "done", "failed")
FINDING_STATES = ("open", "repaired", "approved", "ignored", "resolved")


class ReconRun(Base):
    """One row a reconciliation: a kind, as of a moment; of orders, of a business day too. Once for each.

    ``examined_count`` things were looked at, ``found_count`` of them differ. ``truncated``: there are more differences
    than a run lists. ``attempt_count`` is how often it was begun.
    """

    __tablename__ = "recon_run"

    run_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str]
    business_date: Mapped[date | None] = mapped_column(Date)
    as_of: Mapped[datetime]
    status: Mapped[str] = mapped_column(server_default=text("'queued'"))
    asked_by: Mapped[str]
    attempt_count: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    examined_count: Mapped[int | None]
    found_count: Mapped[int | None] = mapped_column(Integer)
    opened_count: Mapped[int | None] = mapped_column(Integer)
    resolved_count: Mapped[int | None] = mapped_column(Integer)
    truncated: Mapped[bool] = mapped_column(server_default=text("false"))
    reason: Mapped[str | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]

    __table_args__ = (
        one_of("kind", RECON_KINDS, "kind"),
        one_of("status", RUN_STATUSES, "status"),
        CheckConstraint("(kind = 'orders') = (business_date IS NOT NULL)", name="day"),
        CheckConstraint("(status = 'done') = (found_count IS NOT NULL)", name="done"),
        CheckConstraint("(status IN ('done', 'failed')) = (finished_at IS NOT NULL)", name="finished"),
        UniqueConstraint(
            "kind", "as_of", "business_date", name="uq_recon_run_moment", postgresql_nulls_not_distinct=True
        ),
        Index("ix_recon_run_kind", "kind", "run_id"),
        Index("ix_recon_run_open", "created_at", postgresql_where=text("status IN ('queued', 'running')")),
    )


class ReconFinding(Base):
    """One row a difference, from the run that found it first until it is repaired, ignored or gone by itself.

    ``subject`` names what differs, with words and numbers; the columns after it name it for programs. Of a class and
    subject, and of orders of a business day, one is open at most. ``amount_minor`` is what is at stake. ``seen_as_of``
    is the latest moment as of which it was found, ``seen_count`` by how many runs. ``outcome`` is what the repair did,
    or why it was refused.
    """

    __tablename__ = "recon_finding"

    finding_id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    kind: Mapped[str]
    finding_class: Mapped[str]
    subject: Mapped[str]
    business_date: Mapped[date | None] = mapped_column(Date)
    template_id: Mapped[int | None]
    user_id: Mapped[str | None]
    order_no: Mapped[str | None]
    coupon_id: Mapped[int | None]
    evidence: Mapped[dict[str, Any]] = mapped_column(JSONB)
    amount_minor: Mapped[int | None]
    currency: Mapped[str | None]
    repair: Mapped[str | None]
    state: Mapped[str] = mapped_column(server_default=text("'open'"))
    first_run_id: Mapped[int]
    last_run_id: Mapped[int]
    seen_as_of: Mapped[datetime]
    seen_count: Mapped[int] = mapped_column(Integer, server_default=text("1"))
    opened_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    decided_by: Mapped[str | None]
    comment: Mapped[str | None]
    outcome: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))

    __table_args__ = (
        one_of("kind", RECON_KINDS, "kind"),
        one_of("state", FINDING_STATES, "state"),
        CheckConstraint("(state = 'open') = (closed_at IS NULL)", name="closed"),
        CheckConstraint("(state IN ('repaired', 'approved', 'ignored')) = (decided_by IS NOT NULL)", name="decided"),
        CheckConstraint("(amount_minor IS NULL) = (currency IS NULL)", name="money"),
        Index(
            "uq_recon_finding_open",
            "kind",
            "finding_class",
            "subject",
            "business_date",
            unique=True,
            postgresql_nulls_not_distinct=True,
            postgresql_where=text("state = 'open'"),
        ),
        Index("ix_recon_finding_subject", "kind", "finding_class", "subject", "finding_id"),
        Index("ix_recon_finding_state", "state", "finding_id"),
        Index(
            "ix_recon_finding_day", "business_date", "finding_id", postgresql_where=text("business_date IS NOT NULL")
        ),
    )


class ReconRunFinding(Base):
    """What a run found, also where it was known before."""

    __tablename__ = "recon_run_finding"

    run_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    finding_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)

    __table_args__ = (Index("ix_recon_run_finding_finding", "finding_id"),)
