"""How the jobs of the table stand: when each ran last, and when it runs next (API.md, Operations)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from coupon_workers.runtime.services import Services
from coupon_workers.scheduling.extra_run import ExtraRun, newest_extra_runs
from coupon_workers.scheduling.job_table import TABLE
from coupon_workers.scheduling.last_run import LastRun, last_runs


@dataclass(frozen=True, slots=True)
class JobState:
    """A row of the table. ``trigger`` in words; ``next_at``: the first logical instant from now on; of what never
    happened there is None."""

    name: str
    trigger: str
    next_at: datetime
    last: LastRun | None
    last_extra: ExtraRun | None


@dataclass(frozen=True, slots=True)
class JobAge:
    """How long ago a job's task was last sent by a scheduler, in seconds, and how often that should happen. None:
    never. As long ago counts what was sent in time to come, by a clock that was set back since: nothing is due before
    then."""

    name: str
    age_s: float | None
    period_s: float


def read_jobs(services: Services) -> list[JobState]:
    """All jobs, in the order of the table. Raises ``StoreUnavailable``."""
    last = {run.job: run for run in last_runs(services.engine)}
    extra = newest_extra_runs(services.engine)
    now = services.clock()
    return [
        JobState(job.name, job.trigger.words, job.trigger.following(now), last.get(job.name), extra.get(job.name))
        for job in TABLE
    ]


def read_job_ages(services: Services) -> list[JobAge]:
    """All jobs, in the order of the table. Raises ``StoreUnavailable``."""
    sent = {run.job: run.sent_at for run in last_runs(services.engine)}
    now = services.clock()
    return [JobAge(job.name, _age_s(sent.get(job.name), now), job.trigger.period.total_seconds()) for job in TABLE]


def _age_s(sent_at: datetime | None, now: datetime) -> float | None:
    return None if sent_at is None else abs((now - sent_at).total_seconds())
