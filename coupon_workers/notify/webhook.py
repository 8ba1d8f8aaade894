"""Webhooks: made, listed, ended. The secret of one is shown once, when it is made."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.notify.webhook_url import url_problem
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

SECRET_BYTES = 32
"""Standard Webhooks asks for 24 to 64."""

_COLUMNS = "webhook_id, url, events, description, created_by, created_at, disabled_at, disabled_reason"

DISCARDED_AT_ONCE = 10_000
"""Messages on their way that are discarded with the end of a webhook; the care job discards the others."""

_DISCARD = text("""
    UPDATE delivery SET state = 'discarded', finished_at = :now, leased_until = NULL, last_error = :reason
     WHERE delivery_id = ANY (ARRAY (
        SELECT delivery_id FROM delivery WHERE target = 'webhook:' || :webhook_id AND state = 'pending'
         LIMIT :most FOR UPDATE SKIP LOCKED))
""")


@dataclass(frozen=True, slots=True)
class WebhookRecord:
    """What may be shown of a webhook at any time. ``events`` empty: all; ``disabled_at`` None: it is at work."""

    webhook_id: int
    url: str
    events: tuple[str, ...]
    description: str | None
    created_by: str
    created_at: datetime
    disabled_at: datetime | None
    disabled_reason: str | None


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A webhook just made, with its secret (``whsec_…``)."""

    secret: str
    record: WebhookRecord


def create_webhook(
    services: Services, webhook_id: int, *, url: str, events: Sequence[str], description: str | None, created_by: str
) -> NewWebhook:
    """Make a webhook of this identity; made again by a repeated request it is the one that was made first.

    Raises ``InvalidInput`` for an address that may not be used, ``StoreUnavailable``.
    """
    problem = url_problem(url, allow_private=services.settings.webhook_private)
    if problem:
        raise InvalidInput([("url", problem)])
    row = {
        "webhook_id": webhook_id,
        "url": url,
        "secret": "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode(),
        "events": list(dict.fromkeys(events)),
        "description": description,
        "created_by": created_by,
        "now": services.clock(),
    }
    with transaction(services.engine) as connection:
        inserted = connection.execute(
            text(
                "INSERT INTO webhook (webhook_id, url, secret, events, description, created_by, created_at)"
                " VALUES (:webhook_id, :url, :secret, CAST(:events AS text[]), :description, :created_by, :now)"
                " ON CONFLICT DO NOTHING"
            ),
            row,
        )
        made = connection.execute(text(f"SELECT secret, {_COLUMNS} FROM webhook WHERE webhook_id = :webhook_id"), row)
        found = made.one()
        if inserted.rowcount:
            # The query of an address may hold what opens the receiver.
            facts = {"url": url.partition("?")[0], "events": row["events"], "description": description}
            record(connection, AuditAction.WEBHOOK_CREATE, f"webhook:{webhook_id}", after=facts)
    return NewWebhook(found.secret, _record(found))


def list_webhooks(services: Services, *, limit: int, before: int | None = None) -> list[WebhookRecord]:
    """Up to ``limit`` webhooks, newest first, those made before ``before``. Raises ``StoreUnavailable``."""
    query = text(f"SELECT {_COLUMNS} FROM webhook WHERE webhook_id < :before ORDER BY webhook_id DESC LIMIT :limit")
    with transaction(services.engine) as connection:
        rows = connection.execute(query, {"before": 2**63 - 1 if before is None else before, "limit": limit})
        return [_record(row) for row in rows]


def read_webhook(connection: Connection, webhook_id: int) -> WebhookRecord:
    """One webhook. Raises ``NotFound`` ``WEBHOOK_NOT_FOUND``."""
    row = connection.execute(
        text(f"SELECT {_COLUMNS} FROM webhook WHERE webhook_id = :webhook_id"), {"webhook_id": webhook_id}
    ).one_or_none()
    if row is None:
        raise NotFound("WEBHOOK_NOT_FOUND", "there is no such webhook")
    return _record(row)


def end_webhook(services: Services, webhook_id: int, reason: str) -> WebhookRecord:
    """End a webhook for good; what is on its way to it is discarded. Ending it again changes nothing.

    Raises ``NotFound`` ``WEBHOOK_NOT_FOUND``, ``StoreUnavailable``.
    """
    with transaction(services.engine) as connection:
        if disable(connection, webhook_id, reason, services.clock()):
            record(connection, AuditAction.WEBHOOK_END, f"webhook:{webhook_id}", after={"reason": reason})
        return read_webhook(connection, webhook_id)


def hold_webhook(connection: Connection, webhook_id: int | None) -> None:
    """Keep others from ending the webhook until the caller's transaction is over."""
    query = text("SELECT FROM webhook WHERE webhook_id = :webhook_id FOR UPDATE")
    connection.execute(query, {"webhook_id": webhook_id})


def disable(connection: Connection, webhook_id: int, reason: str, now: datetime) -> bool:
    """End a webhook within the caller's transaction, and discard what is on its way to it; whether it was at work."""
    ended = connection.execute(
        text(
            "UPDATE webhook SET disabled_at = :now, disabled_reason = :reason"
            " WHERE webhook_id = :webhook_id AND disabled_at IS NULL"
        ),
        {"webhook_id": webhook_id, "reason": reason, "now": now},
    )
    if ended.rowcount:
        discard_pending(connection, webhook_id, reason, now)
    return bool(ended.rowcount)


def discard_pending(connection: Connection, webhook_id: int, reason: str, now: datetime) -> int:
    """Discard up to ``DISCARDED_AT_ONCE`` messages on their way; how many there were."""
    values = {"webhook_id": webhook_id, "reason": reason, "now": now, "most": DISCARDED_AT_ONCE}
    return connection.execute(_DISCARD, values).rowcount


def _record(row: Any) -> WebhookRecord:
    return WebhookRecord(
        row.webhook_id,
        row.url,
        tuple(row.events),
        row.description,
        row.created_by,
        row.created_at,
        row.disabled_at,
        row.disabled_reason,
    )
