"""Whether this process can do its work: its servers answer, and what should move has moved (API.md, Operations).

Each probe runs in a thread of its own, all at once, and has ``PROBE_S``. A probe whose server hangs goes on in its
thread and is not started again before it has ended: a hanging server costs one thread, however often it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import datetime
from threading import Lock, Thread
from typing import Literal

from redis.exceptions import RedisError
from sqlalchemy import func, select, text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.broker_queues import BrokerQueues
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.queue_depth import pending_depths
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.services import Services
from coupon_workers.schema import JobRun

PROBE_S = 1.0

STATEMENT_MS = 900
"""PostgreSQL itself ends a probe that would come too late to be heard."""

LATE_CLAIM_MS = 60_000
LATE_SCHEDULER_S = 180
"""From when on a queue or a scheduler is called late. Late is not down: claims are accepted all the same, so a
balancer must not take the front away."""

Detail = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Part:
    """One part's state: ``ok``, ``late`` or ``down``, and what there is to say about it."""

    state: str
    detail: Detail


@dataclass(frozen=True, slots=True)
class Health:
    """All parts by name."""

    parts: Mapping[str, Part]

    @property
    def status(self) -> Literal["ok", "degraded", "down"]:
        """``down`` without Redis alone: claims are accepted without PostgreSQL and without the broker (DESIGN 6), and a
        balancer that took every front away would stop them."""
        if self.parts["redis"].state == "down":
            return "down"
        return "degraded" if any(part.state == "down" for part in self.parts.values()) else "ok"


class HealthCheck:
    """The probes of one process. Threads may share it; make it after a fork."""

    def __init__(self, services: Services, queues: BrokerQueues) -> None:
        self._services = services
        self._queues = queues
        self._redis = make_redis(services.settings, timeout_ms=STATEMENT_MS)
        self._probes: dict[str, Callable[[], Part]] = {
            "redis": self._probe_redis,
            "postgresql": self._probe_postgresql,
            "broker": self._probe_broker,
            "queued_claims": self._probe_queued_claims,
            "scheduler": self._probe_scheduler,
        }
        self._running: dict[str, Future[Part]] = {}
        self._lock = Lock()

    def check(self) -> Health:
        """Ask every part at once; back after ``PROBE_S`` at the latest."""
        asked = {name: self._start(name) for name in self._probes}
        wait(asked.values(), timeout=PROBE_S)
        return Health({name: _part(name, probe) for name, probe in asked.items()})

    def _start(self, name: str) -> Future[Part]:
        with self._lock:
            running = self._running.get(name)
            if running is None or running.done():
                running = Future()
                Thread(target=_run, args=(self._probes[name], running), name=f"probe-{name}", daemon=True).start()
                self._running[name] = running  # now: where no thread is to be had, the next one asks again
            return running

    def _probe_redis(self) -> Part:
        try:
            self._redis.ping()
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error
        return Part("ok", {})

    def _probe_postgresql(self) -> Part:
        with transaction(self._services.engine) as connection:
            connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_MS}"))
            connection.execute(text("SELECT 1"))
        return Part("ok", {})

    def _probe_broker(self) -> Part:
        self._queues.depths()
        return Part("ok", {})

    def _probe_queued_claims(self) -> Part:
        pending = pending_depths(self._redis)
        oldest_ms = pending[0].oldest_age_ms if pending else None
        late = oldest_ms is not None and oldest_ms > LATE_CLAIM_MS
        queued = sum(bucket.depth for bucket in pending)
        return Part("late" if late else "ok", {"queued": queued, "oldest_age_ms": oldest_ms})

    def _probe_scheduler(self) -> Part:
        with transaction(self._services.engine) as connection:
            connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_MS}"))
            last, now = connection.execute(select(func.max(JobRun.recorded_at), func.now())).one()
        return _scheduler_part(last, now)


def _scheduler_part(last: datetime | None, now: datetime) -> Part:
    if last is None:
        return Part("late", {"last_run": None})
    # A run in time to come is of a clock that was set back since: nothing is due before then.
    late = abs((now - last).total_seconds()) > LATE_SCHEDULER_S
    return Part("late" if late else "ok", {"last_run": rfc3339(last)})


def _run(probe: Callable[[], Part], future: Future[Part]) -> None:
    try:
        part = probe()
    except BaseException as error:  # noqa: BLE001 - whoever waits for the future gets it
        future.set_exception(error)
    else:
        future.set_result(part)


def _part(name: str, probe: Future[Part]) -> Part:
    """What a probe found. What went wrong is not told here: anybody may ask."""
    if not probe.done():
        return Part("down", {"reason": f"no answer within {PROBE_S:g} s"})
    error = probe.exception()
    if error is None:
        return probe.result()
    return Part("down", {"reason": "no answer" if isinstance(error, StoreUnavailable) else "the probe failed"})
