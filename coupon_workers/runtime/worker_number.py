"""A worker number of identities that no two living processes share, leased in Redis (DESIGN 6, step 1).

Redis and not PostgreSQL, because claims go on while PostgreSQL is away.
"""

from __future__ import annotations

import secrets
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import redis

from coupon_workers.errors import ClockWentBack, CouponWorkersError, StoreUnavailable, WorkerNumbersExhausted
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.snowflake import BORROW_MS, FURTHEST_AHEAD_MS, WORKER_NUMBERS, Snowflake, wall_clock_ms
from coupon_workers.runtime.structured_log import get_logger

WORKER_NUMBERS_KEY = "cw:worker-numbers"
"""Hash number → ``<token> <lease_until_ms> <ceiling_ms>``; see ``lua/lease_worker_number.lua``."""

BRIDGED_MS = 60_000
"""A number whose identities are dated further ahead than this is left to someone whose clock is later."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long a number is held, and how often the lease is renewed, in seconds.

    A process goes on for ``lease_s`` without Redis. ``renew_s`` is short because a Redis that lost its data knows no
    holders until they renew, and newcomers date their identities ahead for that time.
    """

    lease_s: float = 30.0
    renew_s: float = 2.0
    retry_s: float = 0.5

    @property
    def notice_ms(self) -> int:
        """Milliseconds within which a holder notices that Redis lost its data: one renewal and its delay."""
        return round((self.renew_s + 2 * self.retry_s) * 1000)


@dataclass(frozen=True, slots=True)
class _Held:
    ids: Snowflake
    ends_s: float


class LeasedIds:
    """Identities of this process. The number is leased at the first use, by a thread that then renews it.

    The thread ends with ``close``, or when nobody refers to this any more. Make it after a fork, never before: a
    thread does not cross one. ``monotonic_s`` is bound here, so that a test's frozen clock does not end a lease.
    """

    def __init__(
        self,
        client: redis.Redis,
        clock_ms: Callable[[], int] = wall_clock_ms,
        terms: LeaseTerms | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._clock_ms = clock_ms
        self._terms = terms or LeaseTerms()
        self._monotonic_s = monotonic_s
        self._token = secrets.token_hex(8)
        self._search_from = secrets.randbelow(WORKER_NUMBERS)
        self._held: _Held | None = None
        self._refusal: CouponWorkersError = StoreUnavailable("Redis", "no worker number is leased yet")
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._decided = threading.Event()
        self._closing = threading.Event()

    @property
    def worker_number(self) -> int | None:
        """The number held at this moment, if one is."""
        held = self._held
        return held.ids.worker_number if held else None

    def next_id(self, route: int = 0) -> int:
        """A new identity that carries ``route`` (0–255), unique among all processes of this Redis.

        Raises ``StoreUnavailable`` when no number is held because Redis does not answer, ``WorkerNumbersExhausted``
        when all are taken, ``ClockWentBack`` as ``Snowflake`` does.
        """
        held = self._held or self._first_lease()
        if self._monotonic_s() >= held.ends_s:
            raise StoreUnavailable("Redis", "the lease of the worker number has ended and could not be renewed")
        return held.ids.next_id(route)

    def close(self) -> None:
        """Give the number back at once; nothing is given out afterwards. Without this the lease ends by itself."""
        self._closing.set()
        with self._starting:
            thread = self._thread
        if thread is not None:
            thread.join(timeout=2 * self._terms.renew_s)
        held, self._held = self._held, None
        self._refusal = StoreUnavailable("Redis", "the identities of this process are closed")
        if held is not None:
            self._release(held)

    def _first_lease(self) -> _Held:
        with self._starting:
            if self._thread is None and not self._closing.is_set():
                arguments = (weakref.ref(self), self._closing)
                thread = threading.Thread(target=_keep, args=arguments, name="worker-number", daemon=True)
                thread.start()
                self._thread = thread  # now: where no thread is to be had, the next caller asks again
        if not self._closing.is_set():
            self._decided.wait(self._terms.lease_s)
        held = self._held
        if held is None:
            raise self._refusal.with_traceback(None)  # one instance, raised often: its trace must not grow
        return held

    def _attempt(self) -> float:
        """Lease or renew once; answers the seconds until the next time."""
        try:
            self._lease()
        except Exception as error:  # noqa: BLE001 - a thread that died of it would end all identities
            self._note_failure(error)
            return self._terms.retry_s
        finally:
            self._decided.set()
        return self._terms.renew_s

    def _note_failure(self, error: Exception) -> None:
        expected = isinstance(error, CouponWorkersError)
        refusal = error if isinstance(error, CouponWorkersError) else StoreUnavailable("Redis", str(error))
        if str(refusal) != str(self._refusal):  # once an outage
            _log.warning("worker_number_not_leased", error=str(error), exc_info=None if expected else error)
        self._refusal = refusal

    def _lease(self) -> None:
        held = self._held
        if held is not None and held.ids.high_water_ms - self._clock_ms() > FURTHEST_AHEAD_MS:
            self._abandon(held)
            held = None
        asked_s = self._monotonic_s()
        word, number, start_after_ms, ceiling_ms = self._ask(held)
        if held is None or word == b"LEASED":
            own_high_water_ms = held.ids.high_water_ms if held else 0
            ids = Snowflake(number, self._clock_ms, max(start_after_ms, own_high_water_ms))
            _log.info("worker_number_leased", number=number, start_after_ms=start_after_ms)
            held = _Held(ids, 0.0)
        held.ids.allow_until(ceiling_ms)
        if not self._closing.is_set():
            self._held = replace(held, ends_s=asked_s + self._terms.lease_s)
            self._refusal = StoreUnavailable("Redis", "no worker number is leased")

    def _ask(self, held: _Held | None) -> tuple[bytes, int, int, int]:
        now_ms = self._clock_ms()
        lease_ms = round(self._terms.lease_s * 1000)
        answer: list[Any] = lua_script("lease_worker_number")(
            self._client,
            [WORKER_NUMBERS_KEY],
            [
                self._token,
                held.ids.worker_number if held else self._search_from,
                WORKER_NUMBERS,
                lease_ms,
                max(now_ms, held.ids.high_water_ms if held else 0),
                lease_ms + BORROW_MS,
                now_ms + BRIDGED_MS,
                self._terms.notice_ms,
            ],
        )
        if answer[0] == b"EXHAUSTED":
            raise WorkerNumbersExhausted
        return answer[0], int(answer[1]), int(answer[2]), int(answer[3])

    def _abandon(self, held: _Held) -> None:
        """The clock stepped back beyond bridging: leave the number to later times, and go on with another."""
        self._held = None
        self._refusal = ClockWentBack()
        _log.warning("worker_number_abandoned", number=held.ids.worker_number, high_water_ms=held.ids.high_water_ms)
        self._release(held)
        self._token = secrets.token_hex(8)

    def _release(self, held: _Held) -> None:
        high_water_ms = held.ids.allow_until(0)
        try:
            lua_script("release_worker_number")(
                self._client, [WORKER_NUMBERS_KEY], [self._token, held.ids.worker_number, high_water_ms]
            )
        except StoreUnavailable as error:
            _log.info("worker_number_not_released", number=held.ids.worker_number, error=str(error))


def _keep(ids: weakref.ref[LeasedIds], closing: threading.Event) -> None:
    pause_s = 0.0
    while not closing.wait(pause_s) and (owner := ids()) is not None:
        pause_s = owner._attempt()
        del owner  # while this waits, nothing here keeps the owner alive
