"""The sweep over all gates: whatever was left hanging by a kill or a lost message is taken up again in seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from coupon_workers.claiming.gate_pulse import MANY_BELLS, Pulse, ask_for_preheat, read_pulses, ring_again
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import preheat_template, settle_claims

log = get_logger(__name__)

CHUNK = 500
"""Templates looked at in one round trip."""

KEEP_AFTER_END = timedelta(days=7)
"""A template that ended stays warm this long, so that late replays are answered from Redis."""

LATELY = timedelta(hours=1)

_PAGE = text(
    # One archived lately may hold claims that were accepted just before.
    "SELECT template_id, version, bucket_count, status FROM coupon_template"
    " WHERE template_id > :after AND claim_end > :since"
    " AND (status IN ('scheduled', 'active', 'paused', 'ended', 'offline')"
    "      OR status = 'archived' AND updated_at > :lately)"
    " ORDER BY template_id LIMIT :chunk"
)


def sweep_gates(services: Services, waiting_bells: int = 0) -> dict[str, int]:
    """One pass: ring forgotten bells, preheat cold templates, bring late changes. Safe at any time, by any number.

    ``waiting_bells`` are queued for the workers. Returns how often each was done: ``rung``, ``preheated``,
    ``synced``. Raises ``StoreUnavailable``.
    """
    done = {"rung": 0, "preheated": 0, "synced": 0}
    after, now = 0, services.clock()
    while True:
        named = {"after": after, "since": now - KEEP_AFTER_END, "lately": now - LATELY, "chunk": CHUNK}
        with transaction(services.engine) as connection:
            page = connection.execute(_PAGE, named).all()
        if not page:
            return done
        after = page[-1].template_id
        for row, keys, pulse in _look(services, page):
            if not pulse.is_warm:
                if row.status != "archived":
                    done["preheated"] += ask_for_preheat(services, keys, preheat_template(row.template_id))
            elif pulse.version < row.version:
                done["synced"] += 1
                sync_template(services, row.template_id)
            if pulse.is_forgotten and waiting_bells + done["rung"] < MANY_BELLS:
                done["rung"] += 1
                ring_again(services, keys, settle_claims(keys.template_id, keys.bucket))
                log.info("forgotten bell rung", template_id=keys.template_id, waited_ms=pulse.waited_ms)


def _look(services: Services, page: Sequence[Any]) -> Iterator[tuple[Any, BucketKeys, Pulse]]:
    """Each bucket of the page's templates: its template's row, its keys, and how it was found."""
    buckets = [(row, BucketKeys(row.template_id, bucket)) for row in page for bucket in range(row.bucket_count)]
    pulses = read_pulses(services.redis, [keys for _, keys in buckets])
    for (row, keys), pulse in zip(buckets, pulses, strict=True):
        yield row, keys, pulse
