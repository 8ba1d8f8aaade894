"""What workers count of their work, kept for the fronts to tell Prometheus (``runtime/work_reading.py``).

Workers have no port that anybody could ask. Each process adds up what it did, and once a second adds the sums to one
hash in the stock's Redis, so that a scrape of any front tells of all workers on all hosts. While Redis is away the sums
grow here; a Redis that was emptied begins at zero, which Prometheus takes for a restart.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock, Thread

import redis
from redis.exceptions import RedisError

WORK_KEY = "cw:work"
"""Hash ``<metric>|<label>|<part>`` → integer; the part is a bucket's upper bound, ``sum`` (in millionths), or
``total``."""

FLUSH_S = 1.0

MILLIONTHS = 1_000_000
"""Sums are kept as whole millionths: adding floats up for months would lose the small ones."""

BEYOND = "+Inf"


@dataclass(frozen=True, slots=True)
class WorkHistogram:
    """A histogram: ``bounds`` are upper bounds in ``name``'s unit, ascending; ``label`` "" when it has none."""

    name: str
    told: str
    label: str
    bounds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class WorkCount:
    """A counter, named without ``_total``. ``words`` of its label are told from the beginning, at zero: Prometheus
    sees no increase in the first value of a series, and an alert on what is rare would miss it."""

    name: str
    told: str
    label: str
    words: tuple[str, ...] = ()


_WAITS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

MESSAGE_WAIT = WorkHistogram(
    "coupon_message_wait_seconds", "Seconds from the sending of a message to its start, by queue.", "queue", _WAITS_S
)
TASK_TIME = WorkHistogram("coupon_task_seconds", "Seconds a task took, by task.", "task", _WAITS_S)
DRAIN_SIZE = WorkHistogram(
    "coupon_drain_claims",
    "Claims that a drain took off the stream.",
    "",
    (0.0, 1.0, 10.0, 50.0, 100.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 50_000.0),
)
DURABLE_WAIT = WorkHistogram(
    "coupon_claim_durable_seconds", "Seconds from a claim's acceptance to the commit that ended it.", "", _WAITS_S
)
TASKS_FAILED = WorkCount("coupon_tasks_failed", "Tasks that ended in an error, by task.", "task")
CLAIMS_SETTLED = WorkCount(
    "coupon_claims_settled",
    "Accepted claims that ended, by how.",
    "end",
    ("DUPLICATE", "LIMIT_REACHED", "DAILY_LIMIT_REACHED", "SOLD_OUT"),  # whether the gate was wrong: rare
)

HISTOGRAMS = (MESSAGE_WAIT, TASK_TIME, DRAIN_SIZE, DURABLE_WAIT)
COUNTS = (TASKS_FAILED, CLAIMS_SETTLED)

_sums: Counter[str] = Counter()
_adding = Lock()


def observe(histogram: WorkHistogram, values: Iterable[float], label: str = "") -> None:
    """Add ``values`` to a histogram. Threads may call it at once."""
    ascending = sorted(values)
    up_to = [*(bisect_right(ascending, bound) for bound in histogram.bounds), len(ascending)]
    bounds = [*map(repr, histogram.bounds), BEYOND]
    with _adding:
        for bound, before, until in zip(bounds, [0, *up_to], up_to, strict=False):
            if until > before:
                _sums[f"{histogram.name}|{label}|{bound}"] += until - before
        _sums[f"{histogram.name}|{label}|sum"] += round(sum(ascending) * MILLIONTHS)


def count(counter: WorkCount, label: str, number: int = 1) -> None:
    """Add ``number`` to a counter. Threads may call it at once."""
    with _adding:
        _sums[f"{counter.name}|{label}|total"] += number


def flush(client: redis.Redis) -> None:
    """Add what has come up since the last time to the hash, all or nothing. What an error leaves in doubt is added
    again: a count may be told twice, and none is lost."""
    with _adding:
        taken = +_sums
        _sums.clear()
    if not taken:
        return
    pipeline = client.pipeline(transaction=True)
    for field, number in taken.items():
        pipeline.hincrby(WORK_KEY, field, number)
    try:
        pipeline.execute()
    except RedisError:
        with _adding:
            _sums.update(taken)


def flush_for_ever(client: redis.Redis) -> None:
    """Flush once a second, in a thread that ends with the process. Start it after a fork."""

    def run() -> None:
        while True:
            time.sleep(FLUSH_S)
            flush(client)

    Thread(target=run, name="work-flush", daemon=True).start()
