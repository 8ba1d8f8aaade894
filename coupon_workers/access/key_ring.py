"""The keys this process has seen: verified in microseconds, revoked within seconds, usable while PostgreSQL is away.

Claims go on while the database is down (DESIGN 6), so a key that was seen before must be believed for a while without
it. An age is the time since PostgreSQL last confirmed the key:

* up to ``FRESH_S`` it is believed;
* up to ``LIMIT_S`` it is believed, and PostgreSQL is asked in the background;
* beyond, the caller waits for PostgreSQL up to ``WAIT_S``. When it does not answer it counts as away: it is asked
  again each ``AWAY_S``, in the background, and the key is believed up to ``TRUST_S``.

A key never seen needs PostgreSQL. All questions run in threads of their own: a database that hangs holds no request
longer than ``WAIT_S`` twice.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock, Thread
from time import monotonic
from typing import Any, TypeVar

from sqlalchemy import Engine

from coupon_workers.access.api_key import key_id_of, live_principals, verify_key
from coupon_workers.access.principal import Principal
from coupon_workers.errors import StoreUnavailable

FRESH_S = 2.0
LIMIT_S = 5.0
TRUST_S = 600.0
WAIT_S = 1.0
AWAY_S = 5.0

MOST_KEYS = 1_000
"""Keys held at once; the one seen first makes room. A shop has tens."""

MOST_REFUSALS = 10_000
REFUSAL_S = 2.0
"""Refused keys are remembered apart and briefly, so that a flood of them neither reaches PostgreSQL nor drives out
a key that is valid."""

LOOKUPS = 4
"""Keys looked up at once, so that a database that hangs costs so many threads and no more."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Known:
    principal: Principal
    confirmed_s: float


class KeyRing:
    """Verifies keys for one process. Threads may share it; make it after a fork.

    ``now_s`` is a monotonic clock in seconds.
    """

    def __init__(self, engine: Engine, now_s: Callable[[], float] = monotonic) -> None:
        self._engine = engine
        self._now_s = now_s
        self._known: dict[str, _Known] = {}
        self._refused: dict[str, float] = {}
        self._forgotten: dict[str, None] = {}
        self._away_until_s: float | None = None
        self._refreshing: Future[None] | None = None
        self._lock = Lock()
        self._lookups = BoundedSemaphore(LOOKUPS)

    def verify(self, key: str) -> Principal | None:
        """Who holds ``key``; None when it is not valid.

        Raises ``StoreUnavailable`` when PostgreSQL is away and the key was not seen here, or not for too long.
        """
        known = self._known.get(key)
        if known is None:
            return self._first_sight(key)
        age_s = self._now_s() - known.confirmed_s
        if age_s <= FRESH_S:
            return known.principal
        return self._believe(key, age_s)

    def forget(self, key_id: str) -> None:
        """Stop believing a key at once, in this process: it was revoked here."""
        with self._lock:
            _put(self._forgotten, key_id, None, MOST_REFUSALS)
            self._known = {key: known for key, known in self._known.items() if known.principal.key_id != key_id}

    def _believe(self, key: str, age_s: float) -> Principal | None:
        now_s, away_until_s = self._now_s(), self._away_until_s
        if away_until_s is None or now_s >= away_until_s:
            refresh = self._start_refresh()
            if age_s > LIMIT_S and away_until_s is None:
                self._wait_for(refresh)
        known = self._known.get(key)
        if known is not None and self._now_s() - known.confirmed_s > TRUST_S:
            raise StoreUnavailable("PostgreSQL", "the key can no longer be confirmed")
        return known.principal if known else None

    def _wait_for(self, refresh: Future[None]) -> None:
        try:
            refresh.result(WAIT_S)
        except TimeoutError:
            self._away_until_s = self._now_s() + AWAY_S
        except StoreUnavailable:
            pass  # the refresh has noted it

    def _start_refresh(self) -> Future[None]:
        with self._lock:
            if self._refreshing is None:
                self._refreshing = _in_thread(self._refresh)
            return self._refreshing

    def _refresh(self) -> None:
        with self._lock:  # a copy: keys that are first seen meanwhile are put into the dictionary itself
            asked_s, held = self._now_s(), dict(self._known)
        try:
            live = live_principals(self._engine, {known.principal.key_id for known in held.values()})
        except StoreUnavailable:
            self._away_until_s = self._now_s() + AWAY_S
            raise
        else:
            with self._lock:
                self._known = dict(self._confirmed(held, live, asked_s))
            self._away_until_s = None
        finally:
            with self._lock:  # whoever starts us holds it until our future is noted: it must not be noted afterwards
                self._refreshing = None

    def _confirmed(self, held: dict[str, _Known], live: dict[str, Principal], asked_s: float) -> Any:
        for key, known in self._known.items():
            if key not in held:
                yield key, known  # first seen while PostgreSQL was asked
            elif (principal := live.get(known.principal.key_id)) is not None:
                yield key, _Known(principal, asked_s)

    def _first_sight(self, key: str) -> Principal | None:
        if key_id_of(key) is None or self._refused.get(key, 0.0) > self._now_s():
            return None
        asked_s = self._now_s()
        principal = self._look_up(key)
        with self._lock:
            if principal is None or principal.key_id in self._forgotten:
                _put(self._refused, key, self._now_s() + REFUSAL_S, MOST_REFUSALS)
                return None
            _put(self._known, key, _Known(principal, asked_s), MOST_KEYS)
        return principal

    def _look_up(self, key: str) -> Principal | None:
        if not self._lookups.acquire(timeout=WAIT_S):
            raise StoreUnavailable("PostgreSQL", "too many keys are being looked up")
        lookup = _in_thread(lambda: verify_key(self._engine, key), self._lookups.release)
        try:
            return lookup.result(WAIT_S)
        except TimeoutError:
            raise StoreUnavailable("PostgreSQL", "the key could not be looked up in time") from None


def _in_thread(work: Callable[[], Value], at_end: Callable[[], object] = lambda: None) -> Future[Value]:
    future: Future[Value] = Future()

    def run() -> None:
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the future gets it
            at_end()
            future.set_exception(error)
        else:
            at_end()
            future.set_result(value)

    Thread(target=run, name="key-ring", daemon=True).start()
    return future


def _put(cache: dict[str, Value], key: str, value: Value, most: int) -> None:
    cache.pop(key, None)
    while len(cache) >= most:
        del cache[next(iter(cache))]
    cache[key] = value
