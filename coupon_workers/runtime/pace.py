"""A pace for work that can wait, while claims come that cannot.

A campaign or a sweep would keep PostgreSQL and a core busy for as long as it lasts, and customers at the front would
wait for both. Settling notes how many claims it settles; while these are many, work in the background keeps to
``COUPON_BACKGROUND_RATE``, and otherwise goes as fast as it can.
"""

from __future__ import annotations

from enum import StrEnum

import redis
from redis.exceptions import RedisError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services

MANY = 50
"""Claims a second from which on work is paced: fewer do not feel it often enough to matter."""

_KEEP_MS = 5_000
_FREE = -1


class Lane(StrEnum):
    """Kinds of work, each with the whole rate to itself: one does not wait for what another has reserved."""

    CAMPAIGN = "campaign"
    EXPIRY = "expiry"


def note_claims(services: Services, settled: int) -> None:
    """Claims were settled. What it cannot tell Redis is forgotten: without Redis no claims come."""
    key = _second(to_ms(services.clock()) // 1000)
    try:
        pipeline = services.redis.pipeline(transaction=False)
        pipeline.incrby(key, settled)
        pipeline.pexpire(key, _KEEP_MS)
        pipeline.execute()
    except RedisError:
        return


def claims_come(services: Services) -> bool:
    """Whether work is paced now: many claims were settled in this second or the one before, and Redis tells."""
    if not services.settings.background_rate:
        return False
    second = to_ms(services.clock()) // 1000
    try:
        counts = services.redis.mget(_second(second), _second(second - 1))
    except RedisError:
        return False
    return max(int(count or 0) for count in counts) >= MANY


def reserve(services: Services, lane: Lane, coupons: int) -> int | None:
    """Milliseconds until work on so many coupons may begin; None while few claims come, or Redis is away.

    Else each call takes a place in the line of ``lane``, whether the work is done or not.
    """
    rate = services.settings.background_rate
    if not rate:
        return None
    second = to_ms(services.clock()) // 1000
    try:
        reply: int = lua_script("reserve_pace")(
            services.redis,
            [_line(lane), _second(second), _second(second - 1)],
            [0, coupons * 1_000_000 // rate, MANY],
        )
    except StoreUnavailable:
        return None
    return None if reply == _FREE else reply


def line_ms(client: redis.Redis, lane: Lane) -> int:
    """How long whoever was last in the line waits. Raises ``StoreUnavailable``."""
    try:
        return max(0, client.pttl(_line(lane)))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error


def _line(lane: Lane) -> str:
    return f"{{pace}}:{lane.value}"


def _second(number: int) -> str:
    return f"{{pace}}:claims:{number}"
