"""Taking templates out of Redis that nobody claims from any more: no value there is kept for ever.

Replays of their requests are answered from the database (``claiming/front.py``).
"""

from __future__ import annotations

from typing import cast

from redis.exceptions import RedisError
from sqlalchemy import text

from coupon_workers.claiming.gate_sweep import KEEP_AFTER_END
from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.claiming.turn import preheat_lock
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import settle_claims

log = get_logger(__name__)

# What is warm and is none of these is kept warm by the sweep.
_STILL_SWEPT = text(
    "SELECT template_id FROM coupon_template"
    " WHERE template_id = ANY(:ids) AND status <> 'archived' AND claim_end > :since"
)
_TURN = text("SELECT pg_try_advisory_xact_lock(:lock)")
CHUNK = 500


def retire_gates(services: Services) -> int:
    """Forget the buckets of templates that are archived, gone, or ended long ago; returns how many.

    Safe at any time, by any number. Raises ``StoreUnavailable``.
    """
    try:
        members = [member.decode().split(".") for member in cast(set[bytes], services.redis.smembers(WARM_TEMPLATES))]
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    buckets = [BucketKeys(int(template_id), int(bucket)) for template_id, bucket in members]
    retired = 0
    for first in range(0, len(buckets), CHUNK):
        chunk = buckets[first : first + CHUNK]
        kept = _still_swept(services, chunk)
        retired += sum(_retire(services, keys) for keys in chunk if keys.template_id not in kept)
    if retired:
        log.info("gates retired", count=retired)
    return retired


def _still_swept(services: Services, chunk: list[BucketKeys]) -> set[int]:
    arguments = {"ids": [keys.template_id for keys in chunk], "since": services.clock() - KEEP_AFTER_END}
    with transaction(services.engine) as connection:
        return set(connection.scalars(_STILL_SWEPT, arguments))


def _retire(services: Services, keys: BucketKeys) -> bool:
    """The keys first, then the list: whoever dies between leaves a bucket that is listed, and is retired again. A
    preheat would list it anew in between: it is kept out, and one that is at work is left alone."""
    with transaction(services.engine) as connection:
        if not connection.scalar(_TURN, {"lock": preheat_lock(keys.template_id, keys.bucket)}):
            return False
        retired = _forget_keys(services, keys)
        if retired:
            _take_off_list(services, keys)
    if not retired:  # claims wait in it, accepted just before the end: they are settled first
        services.post.send(settle_claims(keys.template_id, keys.bucket))
    return retired


def _forget_keys(services: Services, keys: BucketKeys) -> bool:
    """False when claims wait in the bucket: nothing is forgotten then."""
    answer = lua_script("retire_bucket")(
        services.redis,
        [
            keys.meta,
            keys.generation,
            keys.stock,
            keys.takers,
            keys.requests,
            keys.claims,
            keys.pending,
            keys.bell,
            keys.pool,
            keys.risk_list,
            keys.risk_log,
        ],
    )
    return bool(answer == b"RETIRED")


def _take_off_list(services: Services, keys: BucketKeys) -> None:
    try:
        services.redis.srem(WARM_TEMPLATES, f"{keys.template_id}.{keys.bucket}")
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
