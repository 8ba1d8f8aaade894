"""Forgetting events of orders that were never known here, in chunks.

Most orders of a shop have no coupons, and each tells of its payment and its end: these events are the bulk of their
table, and had no effect. Events of known orders are kept for good, as orders and refunds are: a repeated one must be
answered as before, and a ``closed`` keeps the lock that it ended from coming back (API.md, Orders).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text

from coupon_workers.runtime.chunked_deletion import CHUNK, delete_in_chunks
from coupon_workers.runtime.services import Services

KEEP = timedelta(days=90)
"""From the day on which it was refused: far beyond any repetition of a feed, and enough to look into a complaint."""

_UNKNOWN = text("""
    DELETE FROM order_event WHERE (user_id, event_id) IN (
        SELECT user_id, event_id FROM order_event AS event
        WHERE state = 'refused' AND code = 'ORDER_NOT_FOUND' AND tried_at < :before
          AND NOT EXISTS (SELECT FROM coupon_order AS known
                          WHERE known.user_id = event.user_id AND known.order_no = event.order_no)
        ORDER BY tried_at LIMIT :chunk
    )
""")


def forget_unknown_events(services: Services, now: datetime) -> int:
    """Delete events of orders unknown here that were refused ``KEEP`` before ``now``; how many. Safe to run twice, at
    once or after being broken off.

    Raises ``StoreUnavailable``; the chunks before then are done.
    """
    return delete_in_chunks(services.engine, _UNKNOWN, {"before": now - KEEP}, CHUNK)
