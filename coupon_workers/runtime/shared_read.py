"""Reads that callers of the same moment share: a thousand who ask for the same thing ask the store once or twice.

A read that is under way may have begun before something changed that a newcomer knows of. So a newcomer does not join
it: he waits for the next one, which one of those who wait makes for all of them. What is answered is never older than
the question.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from threading import Lock

Read = Callable[[], bytes]

PATIENCE_S = 0.5
"""Whoever has waited so long for the read of another reads for himself: a store that hangs must not hold threads that
the pool of its connections would not let wait."""


class SharedReads:
    """The reads of one process, each under a key. Threads share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: dict[str, Future[bytes]] = {}
        self._next: dict[str, Future[bytes]] = {}

    def read(self, key: str, read: Read) -> bytes:
        """What a ``read`` answers that began after this was called. Raises what it raises."""
        with self._lock:
            joined = self._next.get(key)
            before = self._running.get(key)
            if joined is None:
                mine = self._next[key] = Future()
        if joined is None:
            return self._lead(key, mine, before, read)
        try:
            return joined.result(PATIENCE_S)
        except FutureTimeoutError:
            return read()

    def _lead(self, key: str, mine: Future[bytes], before: Future[bytes] | None, read: Read) -> bytes:
        if before is not None:
            with suppress(Exception):  # theirs; or they take too long
                before.result(PATIENCE_S)
        with self._lock:
            del self._next[key]
            self._running[key] = mine
        try:
            mine.set_result(read())
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                if self._running.get(key) is mine:
                    del self._running[key]
        return mine.result()
