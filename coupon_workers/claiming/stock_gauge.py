"""How many units the gates of what is on sale still have, for those who watch (docs/operations.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
from redis.exceptions import RedisError

from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.queue_depth import CHUNK, server_now_ms

MOST_TOLD = 200
"""Templates with a number of their own: each is a series in Prometheus for as long as that keeps anything."""


@dataclass(frozen=True, slots=True)
class SaleStock:
    """Templates that may be claimed at this moment: how many, how many of them have nothing left, and the units that
    ``MOST_TOLD`` of them have left, those that opened last."""

    on_sale: int
    sold_out: int
    left: dict[int, int]


def read_sale_stock(client: redis.Redis) -> SaleStock:
    """By the gates alone. ``client`` is the stock's. Raises ``StoreUnavailable``."""
    try:
        warm: list[Any] = sorted(client.smembers(WARM_TEMPLATES))
        now_ms = server_now_ms(client)
        opened: dict[int, int] = {}
        left: dict[int, int] = {}
        for start in range(0, len(warm), CHUNK):
            for keys, start_ms, stock in _open_gates(client, warm[start : start + CHUNK], now_ms):
                opened[keys.template_id] = start_ms
                left[keys.template_id] = left.get(keys.template_id, 0) + max(0, stock)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    told = sorted(opened, key=lambda template_id: (-opened[template_id], -template_id))[:MOST_TOLD]
    sold_out = sum(units == 0 for units in left.values())
    return SaleStock(len(left), sold_out, {template_id: left[template_id] for template_id in told})


def _open_gates(client: redis.Redis, members: Sequence[bytes], now_ms: int) -> list[tuple[BucketKeys, int, int]]:
    """Gates that are open: their keys, the instant they opened, and their stock."""
    buckets = [BucketKeys(*map(int, member.split(b"."))) for member in members]
    pipeline = client.pipeline(transaction=False)
    for keys in buckets:
        pipeline.hmget(keys.meta, "status", "start_ms", "end_ms")
        pipeline.get(keys.stock)
        pipeline.exists(keys.generation)
    replies = pipeline.execute()
    return [
        (keys, int(start_ms), int(stock or 0))
        for keys, (status, start_ms, end_ms), stock, whole in zip(
            buckets, replies[0::3], replies[1::3], replies[2::3], strict=True
        )
        if whole and status == b"open" and int(start_ms) <= now_ms < int(end_ms)
    ]
