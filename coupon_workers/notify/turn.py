"""Whose turn it is within one process: slow targets take some of its threads, never all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class Turns:
    """At most ``places`` targets at a time, and each target once. Threads share it."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._lock = Lock()
        self._at_work: set[str] = set()

    @contextmanager
    def take(self, target: str) -> Iterator[bool]:
        """Whether it is this target's turn, for as long as the block runs. Nobody waits: a target that is turned away
        is woken again within seconds."""
        with self._lock:
            mine = target not in self._at_work and len(self._at_work) < self._places
            if mine:
                self._at_work.add(target)
        try:
            yield mine
        finally:
            if mine:
                with self._lock:
                    self._at_work.discard(target)
