"""``scheduler_lease``, ``job_run``, ``job_extra_run``: one leader, each logical run once, extra ones (DESIGN 10)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class SchedulerLease(Base):
    """One row: who leads until when, by the database's clock. ``epoch`` rises with every new leader."""

    __tablename__ = "scheduler_lease"

    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    epoch: Mapped[int]
    expires_at: Mapped[datetime]


class JobRun(Base):
    """One row a logical run of a job, written with the leader's epoch before the task is enqueued."""

    __tablename__ = "job_run"

    job: Mapped[str] = mapped_column(primary_key=True)
    logical_at: Mapped[datetime] = mapped_column(primary_key=True)
    epoch: Mapped[int]
    recorded_at: Mapped[datetime] = mapped_column(server_default=text("now()"))
    enqueued_at: Mapped[datetime | None]

    __table_args__ = (Index("ix_job_run_recorded_at", "recorded_at"),)


class JobExtraRun(Base):
    """One row a run that somebody asked for; it repeats the logical instant ``logical_at``, and stands for none.

    ``enqueued_at`` None: its task has not been sent, as far as anybody knows; nobody sends it later.
    """

    __tablename__ = "job_extra_run"

    job: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    logical_at: Mapped[datetime]
    asked_by: Mapped[str]
    recorded_at: Mapped[datetime]
    enqueued_at: Mapped[datetime | None]

    __table_args__ = (Index("ix_job_extra_run_recorded_at", "recorded_at"),)
