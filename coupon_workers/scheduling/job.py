"""A job: what the table of schedules holds a row for, and which of its runs are due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from coupon_workers.runtime.task import Task
from coupon_workers.scheduling.trigger import Trigger

FREQUENT = timedelta(hours=1)
"""A job with a shorter period than this says little by one run: its runs are kept for a day."""

KEEP_FREQUENT_RUNS = timedelta(days=1)
KEEP_RUNS = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the table. ``task`` makes the task from the logical instant of the run.

    ``misfire_grace`` None: a run is never too late to be caught up, as far back as runs are kept.
    """

    name: str
    trigger: Trigger
    task: Callable[[datetime], Task]
    misfire_grace: timedelta | None = None

    @property
    def keep_runs(self) -> timedelta:
        """How long a run stays in the books, and how far back one is caught up."""
        return KEEP_FREQUENT_RUNS if self.trigger.period < FREQUENT else KEEP_RUNS

    def oldest_due(self, now: datetime) -> datetime:
        """The instant at which a run is too late, and all before it."""
        return now - (self.keep_runs if self.misfire_grace is None else min(self.keep_runs, self.misfire_grace))

    def newest_instant(self, now: datetime) -> datetime:
        """The logical instant up to ``now`` that is nearest to it."""
        return self.trigger.due(None, now)[-1]


def due_runs(job: Job, last_logical: datetime | None, now: datetime) -> list[datetime]:
    """The logical instants of everything due up to ``now``, in order; ``last_logical`` has run (None: nothing has)."""
    oldest = job.oldest_due(now)
    return [logical_at for logical_at in job.trigger.due(last_logical, now) if logical_at > oldest]


def whenever(task: Callable[[], Task]) -> Callable[[datetime], Task]:
    """For a job whose task is the same at every run."""
    return lambda _logical_at: task()
