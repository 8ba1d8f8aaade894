"""Identities made without asking anyone: positive integers below 2**63 that rise with time (DESIGN 5 and 6).

From the highest bit: 41 bits of milliseconds since 2026, 8 of route, 9 of worker number, 5 of sequence. The
milliseconds are *logical*: they follow the clock, never go back, and run ahead when more is asked than one holds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from zlib import crc32

from coupon_workers.errors import ClockWentBack

EPOCH_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z in milliseconds since 1970: where the 41 bits begin. They last until 2095."""

WORKER_NUMBERS = 512
"""How many processes may make identities at the same time."""

BORROW_MS = 1_000
"""How far ahead of the clock a burst may run before it waits: 32,000 identities above the lasting 32,000 a second."""

FURTHEST_AHEAD_MS = 600_000
"""A clock that stepped back further than this is wrong beyond bridging, and identities would be dated far ahead."""

LAST_MS = EPOCH_MS + 2**41 - 1

ROUTES = 256

_SEQUENCES = 32
_MS_SHIFT, _ROUTE_SHIFT, _WORKER_SHIFT = 22, 14, 5
_WAIT_S = 0.000_5
_LONGEST_WAIT_S = 1.0


def wall_clock_ms() -> int:
    """The machine's clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Snowflake:
    """The identities of one worker number, for all threads of a process.

    Identities of one route rise strictly; those of different routes rise by the millisecond. ``start_after_ms`` is
    the last logical millisecond the number's earlier holder may have used: none at or before it is used again.

    Raises ``ValueError`` for a worker number outside 0–511.
    """

    def __init__(
        self,
        worker_number: int,
        clock_ms: Callable[[], int],
        start_after_ms: int = 0,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not 0 <= worker_number < WORKER_NUMBERS:
            raise ValueError(f"a worker number is 0 to {WORKER_NUMBERS - 1}, not {worker_number}")
        self.worker_number = worker_number
        self._clock_ms = clock_ms
        self._sleep = sleep
        self._lock = threading.Lock()
        self._last_ms = max(EPOCH_MS, start_after_ms)
        self._sequence = _SEQUENCES - 1  # used up: the first identity has a later millisecond
        self._reading_ms = self._last_ms
        self._step_back_ms = 0
        self._ceiling_ms = LAST_MS

    @property
    def high_water_ms(self) -> int:
        """The logical millisecond, since 1970, of the newest identity."""
        return self._last_ms

    def allow_until(self, ceiling_ms: int) -> int:
        """Give no identity later than ``ceiling_ms`` from now on; answers the high water at this moment."""
        with self._lock:
            self._ceiling_ms = min(ceiling_ms, LAST_MS)
            return self._last_ms

    def next_id(self, route: int = 0) -> int:
        """A new identity that carries ``route`` (0–255).

        Raises ``ClockWentBack`` when the clock is more than ten minutes behind the newest identity, or when it does not
        move on while a millisecond is waited for.
        """
        waited_s = 0.0
        while (place := self._take_place()) is None:
            if waited_s >= _LONGEST_WAIT_S:
                raise ClockWentBack("the clock stands still, and no millisecond is left to give identities from")
            self._sleep(_WAIT_S)
            waited_s += _WAIT_S
        return place | (route & 0xFF) << _ROUTE_SHIFT

    def _take_place(self) -> int | None:
        """One more in this millisecond, or the first of a later one; None while the clock must be waited for."""
        with self._lock:
            now_ms = self._read_clock()
            place_ms, sequence = self._last_ms, self._sequence + 1
            if sequence == _SEQUENCES:
                place_ms, sequence = place_ms + 1, 0
            if place_ms < now_ms <= self._ceiling_ms:
                place_ms, sequence = now_ms, 0
            if place_ms - now_ms > FURTHEST_AHEAD_MS:
                raise ClockWentBack(f"the clock is {place_ms - now_ms} ms behind the newest identity")
            if place_ms > min(now_ms + self._step_back_ms + BORROW_MS, self._ceiling_ms):
                return None
            self._last_ms, self._sequence = place_ms, sequence
            return place_ms - EPOCH_MS << _MS_SHIFT | self.worker_number << _WORKER_SHIFT | sequence

    def _read_clock(self) -> int:
        """The clock, and how far it has stepped back below what was given: borrowing goes on from there."""
        now_ms = self._clock_ms()
        if now_ms < self._reading_ms:
            self._step_back_ms += self._reading_ms - now_ms
        if now_ms >= self._last_ms:
            self._step_back_ms = 0
        self._reading_ms = now_ms
        return now_ms


def route_of(template_id: int) -> int:
    """Where a template's claims are kept, in 8 bits: stable across processes and releases (CRC-32 of the decimals)."""
    return crc32(str(template_id).encode()) & 0xFF


def of_every_route(identity: int) -> range:
    """``identity``, of route 0, and those that differ from it in the route only: 256, which nobody else is given.

    For what is made by the thousand and never looked for by its route: a millisecond and worker has room for 8,192.
    """
    return range(identity, identity + (ROUTES << _ROUTE_SHIFT), 1 << _ROUTE_SHIFT)


def route_in(identity: int) -> int:
    """The route that ``identity`` was made with."""
    return identity >> _ROUTE_SHIFT & 0xFF


def worker_number_in(identity: int) -> int:
    """The number of the worker that made ``identity``."""
    return identity >> _WORKER_SHIFT & (WORKER_NUMBERS - 1)


def issued_at_ms(identity: int) -> int:
    """The logical millisecond, since 1970, at which ``identity`` was made: the clock's, or little ahead of it."""
    return EPOCH_MS + (identity >> _MS_SHIFT)
