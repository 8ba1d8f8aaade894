"""The sweep over all gates: whatever was left hanging by a kill or a lost message is taken up again in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import text

from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.pending import BELL_TTL_MS
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import preheat_template, settle_claims

log = get_logger(__name__)

CHUNK = 500
"""Templates looked at in one round trip."""

KEEP_AFTER_END = timedelta(days=7)
"""A template that ended stays warm this long, so that late replays are answered from Redis."""

FORGOTTEN_MS = 3_000
"""Claims that have waited this long while hardly a bell is queued have been forgotten: their bell was lost."""

ASK_FOR_PREHEAT_MS = 5_000
LATELY = timedelta(hours=1)

MANY_BELLS = 50
"""With so many bells in the queue the workers are busy, not deaf: one more bell would only wait behind the others."""


@dataclass(frozen=True, slots=True)
class _Gate:
    """A bucket as it was found. ``waited_ms``: how long its oldest claim has waited, None when nothing is pending."""

    template_id: int
    bucket: int
    is_open: bool
    version: int
    is_warm: bool
    warm_version: int
    is_rung: bool
    waited_ms: int | None


def sweep_gates(services: Services, waiting_bells: int = 0) -> dict[str, int]:
    """One pass: ring forgotten bells, preheat cold templates, bring late changes. Safe at any time, by any number.

    ``waiting_bells`` are queued for the workers. Returns how often each was done: ``rung``, ``preheated``,
    ``synced``. Raises ``StoreUnavailable``.
    """
    done = {"rung": 0, "preheated": 0, "synced": 0}
    after, now = 0, services.clock()
    while True:
        with transaction(services.engine) as connection:
            page = connection.execute(
                _PAGE, {"after": after, "since": now - KEEP_AFTER_END, "lately": now - LATELY}
            ).all()
        if not page:
            return done
        after = page[-1].template_id
        for gate in _look(services, page):
            if not gate.is_warm:
                done["preheated"] += _ask_for_preheat(services, gate) if gate.is_open else 0
            elif gate.warm_version < gate.version:
                done["synced"] += 1
                sync_template(services, gate.template_id)
            if _is_forgotten(gate) and waiting_bells + done["rung"] < MANY_BELLS:
                done["rung"] += 1
                _ring(services, gate)


def _ask_for_preheat(services: Services, gate: _Gate) -> int:
    """Once in a while: a preheat takes its time, and those that wait behind it would do its work again."""
    try:
        asked = services.redis.set(
            BucketKeys(gate.template_id, gate.bucket).mending, "1", px=ASK_FOR_PREHEAT_MS, nx=True
        )
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    if asked:
        services.post.send(preheat_template(gate.template_id))
    return 1 if asked else 0


def _is_forgotten(gate: _Gate) -> bool:
    return gate.waited_ms is not None and (not gate.is_rung or gate.waited_ms > FORGOTTEN_MS)


_PAGE = text(
    # One archived lately may hold claims that were accepted just before.
    "SELECT template_id, version, bucket_count, status FROM coupon_template"
    " WHERE template_id > :after AND claim_end > :since"
    " AND (status IN ('scheduled', 'active', 'paused', 'ended', 'offline')"
    "      OR status = 'archived' AND updated_at > :lately)"
    f" ORDER BY template_id LIMIT {CHUNK}"
)


def _look(services: Services, page: Sequence[Any]) -> list[_Gate]:
    pipeline = services.redis.pipeline(transaction=False)
    buckets = [(row, bucket) for row in page for bucket in range(row.bucket_count)]
    for row, bucket in buckets:
        keys = BucketKeys(row.template_id, bucket)
        pipeline.exists(keys.generation)
        pipeline.hget(keys.meta, "version")
        pipeline.exists(keys.bell)
        pipeline.xrange(keys.pending, count=1)
    pipeline.time()
    try:
        *replies, (now_s, now_us) = pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    now_ms = now_s * 1000 + now_us // 1000
    return [
        _Gate(
            row.template_id,
            bucket,
            row.status != "archived",
            row.version,
            bool(warm),
            int(version or 0),
            bool(rung),
            _waited_ms(head, now_ms),
        )
        for (row, bucket), warm, version, rung, head in zip(
            buckets, replies[0::4], replies[1::4], replies[2::4], replies[3::4], strict=True
        )
    ]


def _waited_ms(head: list[tuple[bytes, Any]], now_ms: int) -> int | None:
    return now_ms - int(head[0][0].split(b"-")[0]) if head else None


def _ring(services: Services, gate: _Gate) -> None:
    """Ring first, then mark: a mark without a ring would silence the template until it expires."""
    services.post.send(settle_claims(gate.template_id, gate.bucket))
    try:
        services.redis.set(BucketKeys(gate.template_id, gate.bucket).bell, "1", px=BELL_TTL_MS)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    log.info("forgotten bell rung", template_id=gate.template_id, waited_ms=gate.waited_ms)
