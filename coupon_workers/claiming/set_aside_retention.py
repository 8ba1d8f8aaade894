"""Forgetting entries that were set aside: they hold what users sent, and are of use while somebody looks for who wrote
them."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text

from coupon_workers.runtime.chunked_deletion import CHUNK, delete_in_chunks
from coupon_workers.runtime.services import Services

KEEP = timedelta(days=90)

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
    return delete_in_chunks(services.engine, _FORGET, {"before": now - KEEP}, CHUNK)
