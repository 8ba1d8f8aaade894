"""Whose turn at the machine it is: a test runs beside those of other workers, one that is ``alone`` beside none."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class MachineTurn:
    """Two locks in ``folder``, which the workers of a run have in common; each has a ``MachineTurn`` of its own.

    The kernel gives up what a worker held when it dies.
    """

    def __init__(self, folder: Path) -> None:
        self._door, self._room = (os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600) for name in ("door", "room"))

    @contextmanager
    def taken(self, *, alone: bool) -> Iterator[None]:
        """Wait for those who want to be alone, and if ``alone`` for all; the block runs meanwhile.

        Whoever waits for the room stands in its door: nobody overtakes him, so he waits for one test of each worker.
        """
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)  # not closed: what a test has forked may have it open too
