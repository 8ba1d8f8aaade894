"""The sweep over all gates: whatever was left hanging by a kill or a lost message is taken up again in seconds."""

from __future__ import annotations

from datetime import timedelta

from redis.exceptions import RedisError
from sqlalchemy import Connection, select

from coupon_workers.claiming.gate_rules import GateRules, gate_rules_of
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.pending import BELL_TTL_MS
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import preheat_template, settle_claims
from coupon_workers.schema import CouponTemplate

log = get_logger(__name__)

CHUNK = 500
"""Templates looked at in one round trip."""

KEEP_AFTER_END = timedelta(days=7)
"""A template that ended stays warm this long, so that late replays are answered from Redis."""

SWEPT = ("scheduled", "active", "paused", "ended", "offline")


def sweep_gates(services: Services) -> dict[str, int]:
    """One pass: ring forgotten bells, preheat cold templates, bring late changes. Safe at any time, by any number.

    Returns how often each was done: ``rung``, ``preheated``, ``synced``. Raises ``StoreUnavailable``.
    """
    done = {"rung": 0, "preheated": 0, "synced": 0}
    after = 0
    while True:
        with transaction(services.engine) as connection:
            page = _page(connection, services, after)
        if not page:
            return done
        after = page[-1].template_id
        for rules, bucket, warm, version, pending, rung in _look(services, page):
            if not warm:
                done["preheated"] += 1
                services.post.send(preheat_template(rules.template_id))
            elif version < rules.version:
                done["synced"] += 1
                sync_template(services, rules.template_id)
            if pending and not rung:
                done["rung"] += 1
                _ring(services, rules.template_id, bucket)


def _page(connection: Connection, services: Services, after: int) -> list[GateRules]:
    table = CouponTemplate.__table__
    rows = connection.execute(
        select(table)
        .where(table.c.template_id > after)
        .where(table.c.status.in_(SWEPT))
        .where(table.c.claim_end > services.clock() - KEEP_AFTER_END)
        .order_by(table.c.template_id)
        .limit(CHUNK)
    )
    return [gate_rules_of(dict(row)) for row in rows.mappings()]


def _look(services: Services, page: list[GateRules]) -> list[tuple[GateRules, int, bool, int, int, bool]]:
    pipeline = services.redis.pipeline(transaction=False)
    buckets = [(rules, bucket) for rules in page for bucket in range(rules.bucket_count)]
    for rules, bucket in buckets:
        keys = BucketKeys(rules.template_id, bucket)
        pipeline.exists(keys.generation)
        pipeline.hget(keys.meta, "version")
        pipeline.xlen(keys.pending)
        pipeline.exists(keys.bell)
    try:
        replies = pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    return [
        (rules, bucket, bool(warm), int(version or 0), int(pending), bool(rung))
        for (rules, bucket), warm, version, pending, rung in zip(
            buckets, replies[0::4], replies[1::4], replies[2::4], replies[3::4], strict=True
        )
    ]


def _ring(services: Services, template_id: int, bucket: int) -> None:
    """Ring first, then mark: a mark without a ring would silence the template until it expires."""
    services.post.send(settle_claims(template_id, bucket))
    try:
        services.redis.set(BucketKeys(template_id, bucket).bell, "1", px=BELL_TTL_MS)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    log.info("forgotten bell rung", template_id=template_id)
