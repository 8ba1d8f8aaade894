"""Keeps one thing running: starts it again whenever it ends without having been told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from coupon_workers.errors import CouponWorkersError

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
STEADY_S = 10.0
"""Who lived this long gets the first delay again."""

_START_WAIT_S = 15.0  # a database recovers in a second or two; who waits longer is ended by force


class Restartable(Protocol):
    """A process that can be started again after its end."""

    name: str

    @property
    def pid(self) -> int | None:
        """Its process, while it runs."""

    def start(self) -> None:
        """Start it; raises ``CouponWorkersError`` when it cannot be."""

    def wait(self) -> int:
        """Wait for its end; its exit code."""

    def stop(self, grace_s: float = ...) -> None:
        """Stop it, by force after ``grace_s``."""


class Keeper:
    """Watches ``what``, which has been started, in a thread. ``say`` hears of each end, ``restarted`` of each start."""

    def __init__(self, what: Restartable, *, say: Callable[[str], None], restarted: Callable[[], None]) -> None:
        self.what = what
        self.ends = 0
        self._say = say
        self._restarted = restarted
        self._let_go = threading.Event()
        self._starting = threading.Lock()
        self._thread = threading.Thread(target=self._keep, name=f"{what.name}-keeper", daemon=True)

    def watch(self) -> None:
        """Begin."""
        self._thread.start()

    def let_go(self) -> None:
        """Start it no more: its next end is meant. Waits for a start that is under way, so that it can be stopped."""
        self._let_go.set()
        if self._starting.acquire(timeout=_START_WAIT_S):
            self._starting.release()

    def _keep(self) -> None:
        delay_s = FIRST_DELAY_S
        while True:
            began = time.monotonic()
            code = self.what.wait()
            if self._let_go.is_set():
                return
            self.ends += 1
            if time.monotonic() - began >= STEADY_S:
                delay_s = FIRST_DELAY_S
            self._say(f"ended with {code}; it is started again in {delay_s:g} s")
            if self._let_go.wait(delay_s) or not self._start_again():
                return
            delay_s = min(delay_s * 2, LONGEST_DELAY_S)

    def _start_again(self) -> bool:
        while not self._started():
            if self._let_go.wait(LONGEST_DELAY_S):
                return False
        with suppress(OSError):  # a note that cannot be written is no reason to stop watching
            self._restarted()
        return True

    def _started(self) -> bool:
        with self._starting:
            if self._let_go.is_set():
                return False
            try:
                self.what.start()
            except (CouponWorkersError, OSError) as error:
                self._say(f"could not be started: {error}")
                return False
            return True
