"""What Prometheus reads of the front: claims by outcome, seconds by endpoint, seconds of the claim script.

A hot path only appends to a list (0.05 µs; a counter of prometheus-client costs 1 to 2 µs, a histogram 2 µs); once a
second, and at every scrape, ``flush`` counts what lies there in one go. With ``PROMETHEUS_MULTIPROC_DIR`` in the
environment before this module is imported, the processes of a front share one set of numbers through files in that
folder, and a scrape answered by any of them tells the sum, at most ``FLUSH_S`` late.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter as Tally
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from threading import Lock, Thread
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

MULTIPROC_DIR = "PROMETHEUS_MULTIPROC_DIR"
"""The library's own variable: the folder through which processes share their numbers."""

CONTENT_TYPE = CONTENT_TYPE_LATEST

FLUSH_S = 1.0

MOST_WAITING = 1_000_000
"""Samples kept when nobody flushes: then the oldest are lost, not the memory."""

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

SCRIPT_BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""A script is answered in a fraction of a millisecond, or something is wrong."""

MOST_UNTAKEN = 10_000
"""Pairs kept when nobody takes them: then they are forgotten, all at once."""

Claim = tuple[int, str]
"""A template's identity, and a word of ``claiming/outcome.py``."""

_REGISTRY = CollectorRegistry()
_CLAIMS = Counter("coupon_claims", "Claims answered, by outcome.", ["outcome"], registry=_REGISTRY)
_DRAWS = Counter("coupon_draws", "Draws of lotteries answered, by outcome.", ["outcome"], registry=_REGISTRY)
_SECONDS = Histogram(
    "coupon_request_seconds",
    "Seconds from a request's arrival to its answer, by endpoint.",
    ["endpoint"],
    buckets=BUCKETS_S,
    registry=_REGISTRY,
)
_SCRIPT = Histogram(
    "coupon_claim_script_seconds",
    "Seconds from asking the claim script to its answer, by call.",
    ["call"],
    buckets=SCRIPT_BUCKETS_S,
    registry=_REGISTRY,
)

_times: deque[tuple[str, float]] = deque(maxlen=MOST_WAITING)
_scripts: deque[tuple[str, float]] = deque(maxlen=MOST_WAITING)
_outcomes: deque[Claim] = deque(maxlen=MOST_WAITING)
_untaken: Tally[Claim] = Tally()
_flushing = Lock()

observe_request = _times.append
"""``observe_request((endpoint, seconds))``: a request was answered."""

observe_script = _scripts.append
"""``observe_script((call, seconds))``: the claim script was asked, for one claim or for a batch of them."""

count_claim = _outcomes.append
"""``count_claim((template_id, outcome))``: a claim was answered."""

count_claims = _outcomes.extend
"""``count_claims(pairs)``: several claims were answered at once."""


def count_draw(outcome: str) -> None:
    """A draw of a lottery was answered; ``outcome`` is a word of ``lottery/outcome.py``."""
    _DRAWS.labels(outcome).inc()


def flush() -> None:
    """Count what the hot paths have left. Threads may call it at once."""
    with _flushing:
        claims = Tally(_drain(_outcomes))
        for (_, outcome), number in claims.items():
            _CLAIMS.labels(outcome).inc(number)
        if len(_untaken) > MOST_UNTAKEN:
            _untaken.clear()
        _untaken.update(claims)
        for histogram, waiting in ((_SECONDS, _times), (_SCRIPT, _scripts)):
            seconds: defaultdict[str, list[float]] = defaultdict(list)
            for label, second in _drain(waiting):
                seconds[label].append(second)
            for label, values in seconds.items():
                _observe_all(histogram.labels(label), values)


def take_claims() -> Tally[Claim]:
    """Claims answered by this process since they were last taken, by template and outcome."""
    flush()
    with _flushing:
        taken = Tally(_untaken)
        _untaken.clear()
    return taken


def flush_for_ever() -> None:
    """Flush once a second, in a thread that ends with the process. Start it after a fork."""

    def run() -> None:
        while True:
            time.sleep(FLUSH_S)
            flush()

    Thread(target=run, name="metrics-flush", daemon=True).start()


def exposition(gauges: Iterable[Metric] = ()) -> bytes:
    """Everything in Prometheus' text format: the counts of all processes, and ``gauges`` read just now."""
    flush()
    registry = CollectorRegistry()
    if os.environ.get(MULTIPROC_DIR):
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(_Given(_REGISTRY.collect()))
    registry.register(_Given(gauges))
    return generate_latest(registry)


class _Given(Collector):
    """Metrics that have been collected already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _drain(waiting: deque[Any]) -> Iterator[Any]:
    for _ in range(len(waiting)):
        yield waiting.popleft()


def _observe_all(histogram: Any, values: list[float]) -> None:
    """As ``observe`` for each value, with one write a bucket. The library offers no such call; a test holds the two
    together."""
    for position, number in Tally(bisect_left(histogram._upper_bounds, value) for value in values).items():
        histogram._buckets[position].inc(number)
    histogram._sum.inc(sum(values))
