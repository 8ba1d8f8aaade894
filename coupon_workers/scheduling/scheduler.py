"""The scheduler: at each tick the leader brings everything that is due to the workers (DESIGN 10).

A run is written into the book, then sent, then marked as sent. What stops in between is sent again by whoever leads
next: tasks are safe to run twice, and none is lost. While the broker is away a job has one unsent run, its newest, and
no further ones are written: there is no flood when it is back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Engine

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import Clock
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Post
from coupon_workers.scheduling.job import Job, due_runs
from coupon_workers.scheduling.job_run import Recording, Run, mark_enqueued, newest_runs, record_run
from coupon_workers.scheduling.leader import Leader, Leadership
from coupon_workers.scheduling.outage import OutageLog

_log = get_logger(__name__)


class Scheduler:
    """One of any number of schedulers of the same jobs; ``tick`` it about once a second.

    ``clock`` stands in for the database's clock when it says what is due; the lease keeps to the database's clock.
    """

    def __init__(
        self, jobs: Sequence[Job], engine: Engine, post: Post, leader: Leader | None = None, clock: Clock | None = None
    ) -> None:
        self._jobs = jobs
        self._engine = engine
        self._post = post
        self._leader = leader or Leader(engine)
        self._clock = clock
        self._outages = OutageLog()
        self._mistaken: set[str] = set()

    def tick(self) -> None:
        """Send everything that is due, if this process leads. Outages are logged, and healed by the next tick."""
        try:
            self._tick()
        except StoreUnavailable as error:
            self._outages.away(error)

    def stop(self) -> None:
        """Let the lease go, so that another leads at once."""
        try:
            self._leader.release()
        except StoreUnavailable as error:
            self._outages.away(error)

    def _tick(self) -> None:
        leadership = self._leader.lead()
        self._outages.back("PostgreSQL")
        if leadership is None:
            return
        now = self._clock() if self._clock else leadership.now
        newest = newest_runs(self._engine, [job.name for job in self._jobs])
        for job in self._jobs:
            if not self._leader.still_leads(leadership):
                return
            try:
                self._bring_up_to_date(job, newest.get(job.name), leadership, now)
                self._mistaken.discard(job.name)
            except StoreUnavailable:
                raise
            except Exception:  # noqa: BLE001 - one job's mistake must not keep the others from running
                if job.name not in self._mistaken:  # told once, tried at every tick
                    _log.exception("job_not_sent", job=job.name)
                self._mistaken.add(job.name)

    def _bring_up_to_date(self, job: Job, newest: Run | None, leadership: Leadership, now: datetime) -> None:
        if newest and newest.enqueued_at is None and newest.logical_at > job.oldest_due(now):
            self._send(job, newest.logical_at, leadership)
        for logical_at in due_runs(job, newest.logical_at if newest else None, now):
            recording = record_run(self._engine, leadership, job.name, logical_at)
            if recording is not Recording.RECORDED:
                _log.warning("job_run_refused", job=job.name, why=recording.value, epoch=leadership.epoch)
                return
            crash_point("scheduler.after_record")
            self._send(job, logical_at, leadership)

    def _send(self, job: Job, logical_at: datetime, leadership: Leadership) -> None:
        if not self._leader.still_leads(leadership):
            return
        self._post.send(job.task(logical_at))
        self._outages.back("broker")
        crash_point("scheduler.after_send")
        if not mark_enqueued(self._engine, leadership, job.name, logical_at):
            _log.warning("job_run_mark_refused", job=job.name, epoch=leadership.epoch)
