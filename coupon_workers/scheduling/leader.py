"""One leader among the schedulers: a lease row with an epoch, by the database's clock (DESIGN 10).

No advisory lock: it ends with its session, and the leader may not know. The lease ends by itself, and the epoch, named
by every write, keeps a former leader from writing (see ``job_run.py``).
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import psycopg2
from sqlalchemy import Connection, Engine, text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.structured_log import get_logger

LEASE_NAME = "scheduler"

LEASE_S = 3.0
"""A dead leader's place is taken within this and one tick."""

RENEW_S = 1.0
"""The age at which a lease is renewed: two renewals may fail before it ends."""

_log = get_logger(__name__)

_LEAD = text("""
    INSERT INTO scheduler_lease AS lease (name, holder, epoch, expires_at)
    VALUES (:name, :holder, 1, clock_timestamp() + make_interval(secs => :lease_s))
    ON CONFLICT (name) DO UPDATE SET
        holder = excluded.holder,
        epoch = lease.epoch
            + CASE WHEN lease.holder = excluded.holder AND lease.expires_at > clock_timestamp() THEN 0 ELSE 1 END,
        expires_at = excluded.expires_at
    WHERE lease.holder = excluded.holder OR lease.expires_at <= clock_timestamp()
    RETURNING epoch, clock_timestamp() AS now
""")

_RELEASE = text("""
    UPDATE scheduler_lease SET expires_at = clock_timestamp() WHERE name = :name AND holder = :holder AND epoch = :epoch
""")


@dataclass(frozen=True, slots=True)
class Leadership:
    """A lease held. ``now``: the database's clock when it was taken; ``taken_s``: when it was asked for, monotonic."""

    name: str
    holder: str
    epoch: int
    now: datetime
    taken_s: float


@contextmanager
def statement_at_once(engine: Engine) -> Iterator[Connection]:
    """A connection on which each statement is its own transaction.

    The server then commits without hearing from us again: a process that is stopped in between holds no lock on the
    lease, which would keep everybody else from taking over. Raises ``StoreUnavailable`` when the server is lost.
    """
    try:
        with database_errors(), engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            yield connection
    except psycopg2.Error as error:
        # The session ended after its statement. SQLAlchemy does not expect that where it sets the isolation level back,
        # and the connection's place in the pool is lost to it: only a new pool has all its places.
        engine.dispose()
        raise StoreUnavailable("PostgreSQL", str(error)) from error


class Leader:
    """A candidate that leads whenever it can. Each process, and each test, has a ``holder`` of its own."""

    def __init__(
        self,
        engine: Engine,
        *,
        name: str = LEASE_NAME,
        lease_s: float = LEASE_S,
        renew_s: float = RENEW_S,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._engine = engine
        self._name = name
        self._lease_s = lease_s
        self._renew_s = renew_s
        self._monotonic_s = monotonic_s
        self._leadership: Leadership | None = None

    def lead(self) -> Leadership | None:
        """Take or renew the lease; None when another holds it.

        Raises ``StoreUnavailable`` when the database does not answer; a lease held before then ends by itself.
        """
        asked_s = self._monotonic_s()
        with statement_at_once(self._engine) as connection:
            row = connection.execute(
                _LEAD, {"name": self._name, "holder": self.holder, "lease_s": self._lease_s}
            ).one_or_none()
        before = self._leadership
        self._leadership = Leadership(self._name, self.holder, row.epoch, row.now, asked_s) if row else None
        self._tell_change(before)
        return self._leadership

    def still_leads(self, leadership: Leadership) -> bool:
        """Whether the lease holds at this moment; renewed when it is no longer fresh.

        Raises ``StoreUnavailable`` when a renewal is due and the database does not answer.
        """
        if self._monotonic_s() < leadership.taken_s + self._renew_s:
            return True
        renewed = self.lead()
        return renewed is not None and renewed.epoch == leadership.epoch

    def release(self) -> None:
        """Let the lease go at once, if held. Raises ``StoreUnavailable``; the lease then ends by itself."""
        leadership, self._leadership = self._leadership, None
        if leadership is None:
            return
        with statement_at_once(self._engine) as connection:
            connection.execute(_RELEASE, {"name": self._name, "holder": self.holder, "epoch": leadership.epoch})
        _log.info("scheduler_lease_released", epoch=leadership.epoch)

    def _tell_change(self, before: Leadership | None) -> None:
        now = self._leadership
        if now and (before is None or before.epoch != now.epoch):
            _log.info("scheduler_leads", epoch=now.epoch, holder=self.holder)
        elif before and now is None:
            _log.warning("scheduler_lost_the_lease", epoch=before.epoch, holder=self.holder)
