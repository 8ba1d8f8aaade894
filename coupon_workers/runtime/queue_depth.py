"""Accepted claims that are not settled yet, by template: read from the pending streams (API.md, Operations)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
from redis.exceptions import RedisError

from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.errors import StoreUnavailable

CHUNK = 1_000
"""Streams looked at in one round trip."""


@dataclass(frozen=True, slots=True)
class PendingDepth:
    """``depth`` accepted claims of a template's bucket are not settled yet, the oldest for ``oldest_age_ms``."""

    template_id: int
    bucket: int
    depth: int
    oldest_age_ms: int


def pending_depths(client: redis.Redis) -> list[PendingDepth]:
    """Each bucket with claims that are not settled, the longest waiting first. ``client`` is the stock's.

    Raises ``StoreUnavailable``.
    """
    try:
        warm: list[Any] = sorted(client.smembers(WARM_TEMPLATES))
        now_ms = server_now_ms(client)
        found = []
        for start in range(0, len(warm), CHUNK):
            found += _pending_chunk(client, warm[start : start + CHUNK], now_ms)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    return sorted(found, key=lambda pending: -pending.oldest_age_ms)


def _pending_chunk(client: redis.Redis, members: Sequence[bytes], now_ms: int) -> list[PendingDepth]:
    buckets = [BucketKeys(*map(int, member.split(b"."))) for member in members]
    pipeline = client.pipeline(transaction=False)
    for keys in buckets:
        pipeline.xlen(keys.pending)
        pipeline.xrange(keys.pending, count=1)
    replies = pipeline.execute()
    return [
        PendingDepth(keys.template_id, keys.bucket, depth, max(0, now_ms - int(oldest[0][0].split(b"-")[0])))
        for keys, depth, oldest in zip(buckets, replies[0::2], replies[1::2], strict=True)
        if oldest
    ]


def server_now_ms(client: redis.Redis) -> int:
    """The server's clock: ages are told by the clock that wrote the entries."""
    seconds, microseconds = client.time()
    return int(seconds) * 1000 + int(microseconds) // 1000
