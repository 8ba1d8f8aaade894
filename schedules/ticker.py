"""APScheduler as the ticker: it says when to look, never what is due (that is the database's clock's to say)."""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum, auto

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler

TICK_S = 1.0

SILENCE_S = 5.0
"""No tick for this long: this machine's clock stepped back, and APScheduler waits for the old time to come again."""

_JOB = "tick"


class _News(Enum):
    TICKED = auto()
    STOP = auto()


class Ticker:
    """Calls ``tick`` once a second, one call at a time, until stopped."""

    def __init__(self, tick: Callable[[], None], *, tick_s: float = TICK_S, silence_s: float = SILENCE_S) -> None:
        self._tick = tick
        self._silence_s = silence_s
        self._news: queue.SimpleQueue[_News] = queue.SimpleQueue()
        # A tick that waits for a server is not worth a line a second: the outage has been told.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()},
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
            timezone=UTC,
        )
        self._scheduler.add_job(
            self._run, "interval", seconds=tick_s, id=_JOB, next_run_time=datetime.now(UTC), name=_JOB
        )

    def run(self) -> None:
        """Tick until ``stop``; returns when the last tick is done."""
        self._scheduler.start()
        while True:
            try:
                if self._news.get(timeout=self._silence_s) is _News.STOP:
                    break
            except queue.Empty:
                self._scheduler.modify_job(_JOB, next_run_time=datetime.now(UTC))
        self._scheduler.shutdown(wait=True)

    def stop(self) -> None:
        """End ``run``. A signal handler may call this: a ``SimpleQueue`` takes no lock that its caller may hold."""
        self._news.put(_News.STOP)

    def _run(self) -> None:
        try:
            self._tick()
        finally:
            self._news.put(_News.TICKED)
