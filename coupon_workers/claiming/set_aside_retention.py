"""Forgetting entries that were set aside: they hold what users sent, and are of use while somebody looks for who wrote
them."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text

from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

KEEP = timedelta(days=90)

CHUNK = 1_000
"""Rows deleted in one transaction: milliseconds of locks, and nothing lost when it is broken off."""

_FORGET = text("""
    DELETE FROM claim_set_aside WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM claim_set_aside WHERE at < :before ORDER BY at LIMIT :chunk
    ))
""")


def forget_set_aside(services: Services, now: datetime) -> int:
    """Delete entries that were set aside ``KEEP`` before ``now``; how many. Safe to run twice, at once or after being
    broken off.

    Raises ``StoreUnavailable``; the chunks before then are done.
    """
    deleted = 0
    while True:
        with transaction(services.engine) as connection:
            count = connection.execute(_FORGET, {"before": now - KEEP, "chunk": CHUNK}).rowcount
        deleted += count
        if count < CHUNK:
            return deleted
