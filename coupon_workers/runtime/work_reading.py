"""What all workers have counted, as Prometheus reads it (``runtime/work_meter.py``)."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import cast

import redis
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from redis.exceptions import RedisError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.work_meter import (
    BEYOND,
    COUNTS,
    HISTOGRAMS,
    MILLIONTHS,
    WORK_KEY,
    WorkCount,
    WorkHistogram,
)

Parts = dict[str, int]


def read_work(client: redis.Redis) -> list[Metric]:
    """Every histogram and counter of the workers, those without a value among them. Raises ``StoreUnavailable``."""
    try:
        kept = cast(dict[bytes, bytes], client.hgetall(WORK_KEY))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    found: defaultdict[str, defaultdict[str, Parts]] = defaultdict(lambda: defaultdict(dict))
    for field, number in kept.items():
        name, label, part = field.decode().split("|")
        found[name][label][part] = int(number)
    return [_histogram(kind, found[kind.name]) for kind in HISTOGRAMS] + [
        _counter(kind, found[kind.name]) for kind in COUNTS
    ]


def _histogram(kind: WorkHistogram, found: dict[str, Parts]) -> Metric:
    """Buckets as Prometheus wants them: each with all that are below it."""
    family = HistogramMetricFamily(kind.name, kind.told, labels=[kind.label] if kind.label else [])
    bounds = [*map(repr, kind.bounds), BEYOND]
    for label, parts in sorted(found.items()):
        totals = accumulate(parts.get(bound, 0) for bound in bounds)
        family.add_metric(
            [label] if kind.label else [],
            [(bound, float(total)) for bound, total in zip(bounds, totals, strict=True)],
            parts.get("sum", 0) / MILLIONTHS,
        )
    return family


def _counter(kind: WorkCount, found: dict[str, Parts]) -> Metric:
    family = CounterMetricFamily(kind.name, kind.told, labels=[kind.label])
    for label in sorted({*kind.words, *found}):
        family.add_metric([label], float(found.get(label, {}).get("total", 0)))
    return family
