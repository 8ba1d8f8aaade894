"""How often a user may still draw, as the gate counts it at this moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redis.exceptions import RedisError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.lottery_reading import LotteryAnswer
from coupon_workers.runtime.services import Services
from coupon_workers.templates.local_day import local_day_number


class DrawsLeft(NamedTuple):
    """``draws`` are left, and no more ``today`` only: tomorrow there are others."""

    draws: int
    today: bool


def draws_left(services: Services, lotteries: Sequence[LotteryAnswer], user_id: str) -> list[DrawsLeft | None]:
    """Of each lottery, in one round trip; None without a limit, or while the lottery is not in Redis.

    Raises ``StoreUnavailable``.
    """
    now, pipeline = services.clock(), services.redis.pipeline(transaction=False)
    for each in lotteries:
        keys = LotteryKeys(int(each.lottery_id))
        pipeline.exists(keys.generation)
        pipeline.hget(keys.takers, user_id)
        pipeline.hget(f"{keys.day_prefix}{local_day_number(now, each.timezone)}", user_id)
    try:
        replies = pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    counts = zip(lotteries, replies[0::3], replies[1::3], replies[2::3], strict=True)
    return [_left(each, int(drawn or 0), int(today or 0)) if warm else None for each, warm, drawn, today in counts]


def _left(lottery: LotteryAnswer, drawn: int, today: int) -> DrawsLeft | None:
    limit, daily_limit = lottery.per_user_limit, lottery.per_user_daily_limit
    left = [] if limit is None else [DrawsLeft(max(0, limit - drawn), today=False)]
    left += [] if daily_limit is None else [DrawsLeft(max(0, daily_limit - today), today=True)]
    return min(left, default=None)
