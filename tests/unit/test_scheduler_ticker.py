"""The ticker: steady whatever the machine's clock does."""

from __future__ import annotations

import queue
import threading
import time
from datetime import timedelta

from freezegun import freeze_time

from schedules.table import TABLE
from schedules.ticker import Ticker

SOON_S = 20.0


def test_it_ticks_one_at_a_time_until_stopped() -> None:
    """``run`` returns when the last tick is done."""
    ticks: queue.SimpleQueue[int] = queue.SimpleQueue()
    at_once = threading.Semaphore(1)

    def tick() -> None:
        assert at_once.acquire(blocking=False)
        ticks.put(1)
        at_once.release()

    ticker = Ticker(tick, tick_s=0.02)
    running = threading.Thread(target=ticker.run)
    running.start()
    for _ in range(5):
        ticks.get(timeout=SOON_S)
    ticker.stop()
    running.join(SOON_S)

    assert not running.is_alive()


def test_a_tick_that_fails_is_followed_by_the_next() -> None:
    """An error that nobody foresaw does not end the scheduler."""
    ticks: queue.SimpleQueue[int] = queue.SimpleQueue()

    def tick() -> None:
        ticks.put(1)
        raise RuntimeError("nobody foresaw this")

    ticker = Ticker(tick, tick_s=0.02)
    running = threading.Thread(target=ticker.run)
    running.start()
    ticks.get(timeout=SOON_S)
    ticks.get(timeout=SOON_S)
    ticker.stop()
    running.join(SOON_S)

    assert not running.is_alive()


def test_it_goes_on_when_the_clock_falls_an_hour_back() -> None:
    """APScheduler by itself would wait for the old time to come again."""
    ticks: queue.SimpleQueue[float] = queue.SimpleQueue()

    with freeze_time("2026-11-11 12:00:00", tick=True) as machine:
        ticker = Ticker(lambda: ticks.put(time.time()), tick_s=0.05, silence_s=0.3)
        running = threading.Thread(target=ticker.run)
        running.start()
        before = ticks.get(timeout=SOON_S)
        machine.tick(timedelta(hours=-1))
        after = before
        while after > before - 3_000:
            after = ticks.get(timeout=SOON_S)
        ticks.get(timeout=SOON_S)
        ticker.stop()
        running.join(SOON_S)

    assert not running.is_alive()


def test_the_names_of_the_table_are_unique_and_few_runs_are_ever_too_late() -> None:
    """The book of runs tells jobs apart by name (DESIGN 10: misfire grace None). A notice of an end that is past helps
    nobody; a close or a statement of a month ago is a person's to ask for; of what looks at everything each day one run
    stands for all that were missed, and there is always one within a day."""
    names = [job.name for job in TABLE]

    assert len(names) == len(set(names))
    assert {
        "archive_coupons": 1,
        "warn_of_expiry": 7,
        "close_day": 30,
        "reconcile_state": 1,
        "reconcile_codes": 1,
        "reconcile_orders": 30,
    } == {job.name: job.misfire_grace.days for job in TABLE if job.misfire_grace is not None}
