"""The claim centre: active and coming templates, each with this user's state (API.md, Claims)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import text

from coupon_workers.claiming.key import BucketKeys, bucket_of
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.services import Services
from coupon_workers.templates.local_day import local_day_number

_OFFERS = text(
    """
    SELECT template_id, name, type, currency, amount_minor, percent_off_bp, max_discount_minor, threshold_minor,
           total_quantity, issued_quantity, reserved_quantity, per_user_limit, per_user_daily_limit, claim_start,
           claim_end, timezone, bucket_count, status
      FROM coupon_template
     WHERE status IN ('scheduled', 'active', 'ended') AND claim_end > :now AND template_id < :before
       AND (CAST(:channel AS text) IS NULL OR channels_claim = '[]' OR jsonb_exists(channels_claim, :channel))
     ORDER BY template_id DESC LIMIT :limit
    """
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A template as a user finds it. ``remaining`` is rounded for the public; None while it is being made ready."""

    template: dict[str, Any]
    state: str
    claimed: int
    remaining: int | None


def offers_for(services: Services, user_id: str, channel: str | None, *, limit: int, before: int) -> list[Offer]:
    """Templates newer first with an id below ``before``, at most ``limit``. Raises ``StoreUnavailable``."""
    now = services.clock()
    arguments = {"now": now, "channel": channel, "limit": limit, "before": before}
    with database_errors(), services.engine.connect() as connection:
        templates = [dict(row) for row in connection.execute(_OFFERS, arguments).mappings()]
    return [
        _offer(template, seen, now)
        for template, seen in zip(templates, _look(services, templates, user_id, now), strict=True)
    ]


def _look(
    services: Services, templates: list[dict[str, Any]], user_id: str, now: datetime
) -> list[tuple[Any, Any, Any, Any]]:
    pipeline = services.redis.pipeline(transaction=False)
    for template in templates:
        keys = BucketKeys(template["template_id"], bucket_of(user_id, template["bucket_count"]))
        pipeline.exists(keys.generation)
        pipeline.get(keys.stock)
        pipeline.hget(keys.takers, user_id)
        pipeline.hget(f"{keys.day_prefix}{local_day_number(now, template['timezone'])}", user_id)
    try:
        replies = pipeline.execute() if templates else []
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    return list(zip(replies[0::4], replies[1::4], replies[2::4], replies[3::4], strict=True))


def _offer(template: dict[str, Any], seen: tuple[Any, Any, Any, Any], now: datetime) -> Offer:
    warm, stock, taker, today = seen
    count = int(taker.split()[0]) if taker else 0
    remaining = max(0, int(stock or 0)) if warm else None
    return Offer(template, _state(template, count, int(today or 0), remaining, now), count, _rounded(remaining))


def _state(template: dict[str, Any], count: int, today: int, remaining: int | None, now: datetime) -> str:
    if now < template["claim_start"]:
        return "not_started"
    limit, daily_limit = template["per_user_limit"], template["per_user_daily_limit"]
    if limit is not None and count >= limit:
        return "claimed" if limit == 1 else "limit_reached"
    if daily_limit is not None and today >= daily_limit:
        return "limit_reached"
    if remaining == 0:
        return "sold_out"
    return "claimable"


def _rounded(remaining: int | None) -> int | None:
    """Rounded down to two leading digits: enough for a progress bar, too little to watch the sale by."""
    if remaining is None or remaining < 100:
        return remaining
    step = 10 ** (len(str(remaining)) - 2)
    return int(remaining // step * step)
