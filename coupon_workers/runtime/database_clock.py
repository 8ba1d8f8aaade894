"""PostgreSQL's clock, for every host: validity and deadlines are judged by one clock (DESIGN 6 and 10; FAULTS 15).

The database is asked once in a while, and its time is noted against this machine's monotonic clock: between two askings
no wall clock has any say, and one that steps has no effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Lock, Thread

from sqlalchemy import Engine, text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import Clock, utc_now
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.structured_log import get_logger

REFRESH_S = 30.0
"""Age at which the offset is asked for again: quartz drifts by a millisecond or two meanwhile."""

RETRY_S = 5.0
"""How soon it is asked again after PostgreSQL did not answer."""

FIRST_WAIT_S = 1.0
"""How long a process that knows nothing yet waits for its first answer, once, before it takes its own clock."""

ROUND_TRIP_S = 1.0
"""The instant lies somewhere in the round trip. One longer than this says less than an older offset does."""

STATEMENT_MS = 900
"""PostgreSQL itself ends a question whose answer would say too little."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOW = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")

_log = get_logger(__name__)


class DatabaseClock:
    """A ``Clock`` for all threads of a process; make it after a fork. It connects at its first use, not before.

    PostgreSQL is asked in a thread of its own, one at a time: nobody waits for it, but for the first answer. While it
    is away the last offset goes on; before the first answer ``fallback``, the machine's clock, has to do.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        fallback: Clock = utc_now,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._engine = engine
        self._fallback = fallback
        self._monotonic_ns = monotonic_ns
        self._lock = Lock()
        self._asking: Future[None] | None = None
        self._asking_since_ns = 0
        self._ask_at_ns = monotonic_ns()
        self._has_failed = False
        self._offset_us: int | None = None

    def __call__(self) -> datetime:
        """The present instant by PostgreSQL's clock, aware, in UTC. Raises nothing."""
        self._ask_if_due()
        if self._offset_us is None:
            self._wait_for_first()
        if self._offset_us is None:
            return self._fallback()
        return _EPOCH + timedelta(microseconds=self._monotonic_ns() // 1_000 + self._offset_us)

    def _ask_if_due(self) -> None:
        with self._lock:
            now_ns = self._monotonic_ns()
            if now_ns >= self._ask_at_ns and (self._asking is None or self._asking.done()):
                asking: Future[None] = Future()
                with suppress(RuntimeError):  # no thread is to be had: the next call asks
                    Thread(target=self._ask, args=(asking,), name="database-clock", daemon=True).start()
                    self._asking, self._asking_since_ns = asking, now_ns

    def _wait_for_first(self) -> None:
        """Only the first asking of all is waited for, by all who come meanwhile, until it is ``FIRST_WAIT_S`` old."""
        with self._lock:
            asking, age_s = self._asking, (self._monotonic_ns() - self._asking_since_ns) / 1e9
        if asking is not None and not self._has_failed and age_s < FIRST_WAIT_S:
            wait([asking], timeout=FIRST_WAIT_S - age_s)

    def _ask(self, asking: Future[None]) -> None:
        refreshed = False
        try:
            refreshed = self._note_offset()
        except StoreUnavailable as error:
            _log.warning("database_clock_not_heard", known=self._offset_us is not None, error=str(error))
        finally:
            self._has_failed |= not refreshed
            self._ask_at_ns = self._monotonic_ns() + int((REFRESH_S if refreshed else RETRY_S) * 1e9)
            asking.set_result(None)

    def _note_offset(self) -> bool:
        """Ask, and note the offset; whether the answer came soon enough to say something new."""
        with transaction(self._engine) as connection:
            # Also opens the transaction, so that the next question is one round trip.
            connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_MS}"))
            asked_ns = self._monotonic_ns()
            database_us = int(connection.execute(_NOW).scalar_one())
            heard_ns = self._monotonic_ns()
        if self._offset_us is not None and heard_ns - asked_ns > ROUND_TRIP_S * 1e9:
            return False
        self._offset_us = database_us - (asked_ns + heard_ns) // 2_000
        return True
