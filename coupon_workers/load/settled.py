"""Waiting for servers that were killed, and for empty queues: every accepted claim has been settled."""

from __future__ import annotations

import time
from collections.abc import Callable

from redis.exceptions import RedisError

from coupon_workers.checking.gate_reading import known_buckets
from coupon_workers.checking.reading import snapshot
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.errors import CouponWorkersError, StoreUnavailable
from coupon_workers.runtime.services import Services

_LOOK_EVERY_S = 0.1


class NotSettled(CouponWorkersError):  # noqa: N818 - it says what is the case
    """Claims are still queued after all patience."""


def queued_claims_left(services: Services, template_ids: frozenset[int] | None = None) -> int:
    """Claims that the gate calls queued, of the templates given or of all. Raises ``StoreUnavailable``.

    The larger of stream and marks of each bucket is counted: they are the same unless something is lost.
    """
    buckets = [
        keys for keys in known_buckets(services.redis) if template_ids is None or keys.template_id in template_ids
    ]
    return sum(_left(services, buckets[start : start + 1_000]) for start in range(0, len(buckets), 1_000))


def wait_until_settled(
    services: Services,
    template_ids: frozenset[int] | None = None,
    *,
    stalled_after_s: float = 60.0,
    left: Callable[[int], None] | None = None,
) -> None:
    """Return when nothing is queued; ``left`` is told how much still is. Servers that are away are waited for.

    Raises ``NotSettled`` when nothing has moved for ``stalled_after_s`` seconds.
    """
    fewest: int | None = None
    moved_at = time.monotonic()
    while True:
        try:
            queued = queued_claims_left(services, template_ids)
        except StoreUnavailable:
            queued = None
        if queued is not None and left is not None:
            left(queued)
        if queued == 0:
            return
        if queued is not None and (fewest is None or queued < fewest):
            fewest, moved_at = queued, time.monotonic()
        if time.monotonic() - moved_at > stalled_after_s:
            raise NotSettled(f"{fewest} claims are queued and nothing has moved for {stalled_after_s:g} s")
        time.sleep(_LOOK_EVERY_S)


def wait_for_database(services: Services, patience_s: float) -> None:
    """Return when PostgreSQL answers. A front is ready without it, and whoever asks the database himself is not.

    Raises ``StoreUnavailable`` when it does not within ``patience_s`` seconds.
    """
    gives_up = time.monotonic() + patience_s
    while True:
        try:
            with snapshot(services):
                return
        except StoreUnavailable:
            if time.monotonic() > gives_up:
                raise
        time.sleep(_LOOK_EVERY_S)


def _left(services: Services, buckets: list[BucketKeys]) -> int:
    pipeline = services.redis.pipeline(transaction=False)
    for keys in buckets:
        pipeline.xlen(keys.pending)
        pipeline.hlen(keys.claims)
    try:
        replies = pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    return sum(max(pending, marked) for pending, marked in zip(replies[0::2], replies[1::2], strict=True))
