"""A campaign as it runs: what was answered each second, what is left, what waits, how soon a claim is durable.

One round trip to Redis, however many templates; one statement for the latency of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import text

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.live_tally import SLICE_S, live_key
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

LATE_S = 2
"""Seconds until every front has told what it answered in one: younger ones are not whole, and are not shown."""

MOST_SAMPLED = 2_000
"""Coupons, the newest, of which the latency is told."""


@dataclass(frozen=True, slots=True)
class LiveTemplate:
    """``seconds`` has each second in which something was answered: outcome → claims. ``oldest_ms``: how long the oldest
    claim that is not settled has waited. ``remaining`` and ``queued`` are 0 while the gate is not ``warmed``."""

    template_id: int
    warmed: bool
    remaining: int
    queued: int
    oldest_ms: int
    seconds: dict[int, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Latency:
    """From a claim's acceptance (the gate's clock) to its commit (the database's), of the coupons issued in a
    ``second``; never below 0, whatever the clocks say of one another."""

    second: int
    coupons: int
    median_ms: int
    p99_ms: int


def last_whole_second(services: Services) -> int:
    """Up to here the picture is whole: seconds of the epoch."""
    return to_ms(services.clock()) // 1000 - LATE_S


def read_live(services: Services, template_ids: Sequence[int], since: int) -> list[LiveTemplate]:
    """Each template with its seconds from ``since`` on. Raises ``StoreUnavailable``."""
    until = last_whole_second(services)
    pipeline = services.redis.pipeline(transaction=False)
    pipeline.time()
    for template_id in template_ids:
        keys = BucketKeys(template_id)
        pipeline.exists(keys.generation)
        pipeline.get(keys.stock)
        pipeline.xlen(keys.pending)
        pipeline.xrange(keys.pending, count=1)
        for second in _slices(since, until):
            pipeline.hgetall(live_key(template_id, second))
    try:
        (now_s, now_us), *replies = pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    now_ms = int(now_s) * 1000 + int(now_us) // 1000
    each = 4 + len(_slices(since, until))
    return [
        _template(template_id, replies[each * place : each * (place + 1)], now_ms, range(since, until + 1))
        for place, template_id in enumerate(template_ids)
    ]


def _slices(since: int, until: int) -> range:
    return range(since - since % SLICE_S, until + 1, SLICE_S)


def _template(template_id: int, replies: Sequence[Any], now_ms: int, span: range) -> LiveTemplate:
    warm, stock, queued, oldest, *slices = replies
    seconds: dict[int, dict[str, int]] = {}
    for fields in slices:
        for field, number in fields.items():
            second, _, outcome = field.decode().partition(":")
            if int(second) in span:
                seconds.setdefault(int(second), {})[outcome] = int(number)
    accepted_ms = int(oldest[0][0].split(b"-")[0]) if oldest else now_ms
    return LiveTemplate(
        template_id, bool(warm), max(0, int(stock or 0)), int(queued), max(0, now_ms - accepted_ms), seconds
    )


_LATENCIES = text("""
    SELECT CAST(floor(extract(epoch FROM issued_at)) AS bigint) AS second, count(*) AS coupons,
           percentile_disc(0.5) WITHIN GROUP (ORDER BY taken_ms) AS median_ms,
           percentile_disc(0.99) WITHIN GROUP (ORDER BY taken_ms) AS p99_ms
      FROM (SELECT issued_at, greatest(0, CAST(extract(epoch FROM issued_at - claimed_at) * 1000 AS bigint)) AS taken_ms
              FROM (SELECT issued_at, claimed_at, source FROM coupon
                     WHERE template_id = :template_id ORDER BY coupon_id DESC LIMIT :most) AS newest
             WHERE source = 'claim' AND issued_at >= to_timestamp(:since)) AS sampled
     GROUP BY 1 ORDER BY 1
""")


def read_latency(services: Services, template_id: int, since: int) -> list[Latency]:
    """The seconds from ``since`` on in which the newest coupons were issued. Raises ``StoreUnavailable``."""
    named = {"template_id": template_id, "most": MOST_SAMPLED, "since": since}
    with transaction(services.engine) as connection:
        return [Latency(*row) for row in connection.execute(_LATENCIES, named)]
