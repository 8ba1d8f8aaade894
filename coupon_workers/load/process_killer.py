"""Kills processes of an installation of ours at random, as a bad day would (FAULTS.md, 1-3 and 9)."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

Processes = Callable[[], Mapping[str, Sequence[int]]]
"""The living processes by the name of their entry, masters first."""


class ProcessKiller:
    """Sends SIGKILL to one process each ``every_s`` seconds, in a thread, between ``start`` and ``stop``, and for
    ``within_s`` seconds at the most: a slow machine that is never let heal never ends what it has begun.

    First an entry is drawn, then one of its processes, so that each entry is hit alike however many processes it has.
    ``killed`` counts the kills by entry.
    """

    def __init__(self, processes: Processes, *, every_s: float, seed: int, within_s: float = float("inf")) -> None:
        self._processes = processes
        self._every_s = every_s
        self._within_s = within_s
        self._draw = random.Random(seed)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="process-killer", daemon=True)
        self.killed: Counter[str] = Counter()

    def start(self) -> None:
        """Begin; the first kill comes after ``every_s``."""
        self._thread.start()

    def stop(self) -> None:
        """Kill no more; returns when the thread has ended."""
        self._stopped.set()
        self.join()

    def join(self) -> None:
        """Return when its time is over."""
        self._thread.join()

    def _run(self) -> None:
        ends = time.monotonic() + self._within_s
        while not self._stopped.wait(self._every_s) and time.monotonic() < ends:
            living = {name: pids for name, pids in self._processes().items() if pids}
            if not living:
                continue
            name = self._draw.choice(sorted(living))
            with suppress(ProcessLookupError):  # it ended by itself meanwhile
                os.kill(self._draw.choice(list(living[name])), signal.SIGKILL)
                self.killed[name] += 1
