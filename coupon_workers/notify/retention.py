"""Forgetting: events that were passed on, deliveries and ended webhooks past their keeping time, in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text

from coupon_workers.notify.webhook import discard_pending
from coupon_workers.runtime.chunked_deletion import CHUNK, delete_in_chunks
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

KEEP = timedelta(days=30)
"""Ten times as long as a message is tried; what is still on its way then, nobody takes."""

_EVENTS = text("""
    DELETE FROM outbox WHERE outbox_id = ANY (ARRAY (
        SELECT outbox_id FROM outbox WHERE delivered_at < :before ORDER BY delivered_at LIMIT :chunk
    ))
""")

_DELIVERIES = text("""
    WITH old AS (
        DELETE FROM delivery WHERE delivery_id = ANY (ARRAY (
            SELECT delivery_id FROM delivery WHERE created_at < :before ORDER BY created_at LIMIT :chunk
        ))
        RETURNING delivery_id
    ), tried AS (
        DELETE FROM delivery_attempt USING old WHERE delivery_attempt.delivery_id = old.delivery_id
    )
    SELECT count(*) FROM old
""")

# Nobody sends to one again, and so nobody ends its pause.
_WEBHOOKS = text("""
    WITH gone AS (
        DELETE FROM webhook WHERE disabled_at < :before
           AND NOT EXISTS (SELECT FROM delivery d WHERE d.webhook_id = webhook.webhook_id)
        RETURNING webhook_id
    )
    DELETE FROM delivery_pause p USING gone WHERE p.target = 'webhook:' || gone.webhook_id
""")

# What was passed on while the webhook ended, and what was too much to discard with it.
_STRANDED = text("""
    SELECT webhook_id, disabled_reason FROM webhook
     WHERE disabled_at IS NOT NULL
       AND EXISTS (SELECT FROM delivery d WHERE d.target = 'webhook:' || webhook_id AND d.state = 'pending')
""")


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many rows were deleted."""

    events: int
    deliveries: int


def forget_messages(services: Services, now: datetime) -> Forgotten:
    """Delete what is past its keeping time at ``now``. Safe to run twice, at once or after being broken off.

    Raises ``StoreUnavailable``; the chunks before then are done.
    """
    before = {"before": now - KEEP}
    while _discard_stranded(services, now):
        pass
    events = delete_in_chunks(services.engine, _EVENTS, before, CHUNK)
    deliveries = delete_in_chunks(services.engine, _DELIVERIES, before, CHUNK)
    with transaction(services.engine) as connection:
        connection.execute(_WEBHOOKS, before)
    return Forgotten(events, deliveries)


def _discard_stranded(services: Services, now: datetime) -> int:
    with transaction(services.engine) as connection:
        ended = connection.execute(_STRANDED).all()
        return sum(discard_pending(connection, row.webhook_id, row.disabled_reason, now) for row in ended)
