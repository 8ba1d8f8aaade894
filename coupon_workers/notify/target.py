"""Targets: ``webhook:<id>``, or the name of a channel to users.

Which are due, which are left alone for a while, and how to reach one.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.notify.backoff import pause_after
from coupon_workers.notify.channel import Channel
from coupon_workers.notify.log_channel import LogChannel
from coupon_workers.notify.sms_channel import SmsChannel, load_gateway
from coupon_workers.notify.smtp_channel import SmtpChannel
from coupon_workers.notify.webhook_channel import WebhookChannel
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_DUE = text("""
    SELECT target
      FROM (SELECT 'webhook:' || webhook_id AS target FROM webhook WHERE disabled_at IS NULL
             UNION ALL SELECT unnest(CAST(:channels AS text[]))) AS known
      LEFT JOIN delivery_pause USING (target)
     WHERE coalesce(paused_until, '-infinity') <= :now
       AND EXISTS (SELECT FROM delivery d
                    WHERE d.target = known.target AND d.state = 'pending' AND d.next_attempt_at <= :now
                      AND coalesce(d.leased_until, '-infinity') <= now())
""")

_PAUSE = text("""
    INSERT INTO delivery_pause AS kept (target, failures, paused_until) VALUES (:target, 1, :paused_until)
    ON CONFLICT (target) DO UPDATE SET failures = kept.failures + 1, paused_until = excluded.paused_until
     WHERE kept.paused_until <= :now
""")


def webhook_target(webhook_id: int) -> str:
    """The target of a webhook."""
    return f"webhook:{webhook_id}"


def webhook_of(target: str) -> int | None:
    """The webhook of a target; None when it is a channel to users."""
    return int(target.removeprefix("webhook:")) if target.startswith("webhook:") else None


def due_targets(services: Services) -> list[str]:
    """Who has something due and is not left alone; shuffled: none is always the last. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        known = {"channels": list(services.settings.channels), "now": services.clock()}
        targets = list(connection.scalars(_DUE, known))
    random.shuffle(targets)
    return targets


def is_paused(connection: Connection, target: str, now: datetime) -> bool:
    """Whether the target is left alone at ``now``."""
    query = text("SELECT FROM delivery_pause WHERE target = :target AND paused_until > :now")
    return connection.execute(query, {"target": target, "now": now}).first() is not None


def pause(connection: Connection, target: str, now: datetime) -> None:
    """Leave the target alone for a while, for longer each time in succession. What fails beside the one that failed
    first counts no more."""
    query = text("SELECT failures FROM delivery_pause WHERE target = :target")
    failures = connection.scalar(query, {"target": target}) or 0
    connection.execute(_PAUSE, {"target": target, "paused_until": now + pause_after(failures + 1), "now": now})


def end_pause(connection: Connection, target: str) -> None:
    """The target answers, or somebody wants to know whether it does."""
    connection.execute(text("DELETE FROM delivery_pause WHERE target = :target"), {"target": target})


def open_channel(services: Services, target: str) -> Channel | None:
    """The way to a target; None when there is none any more. Raises ``StoreUnavailable``."""
    webhook_id = webhook_of(target)
    if webhook_id is None:
        return _user_channel(services, target) if target in services.settings.channels else None
    with transaction(services.engine) as connection:
        query = text("SELECT url, secret FROM webhook WHERE webhook_id = :webhook_id AND disabled_at IS NULL")
        webhook: Any = connection.execute(query, {"webhook_id": webhook_id}).one_or_none()
    if webhook is None:
        return None
    return WebhookChannel(webhook.url, webhook.secret, services.clock, allow_private=services.settings.webhook_private)


def _user_channel(services: Services, name: str) -> Channel:
    settings = services.settings
    match name:
        case "smtp":
            assert settings.smtp_url is not None and settings.mail_from is not None  # the settings' own rule
            return SmtpChannel(settings.smtp_url.get_secret_value(), settings.mail_from)
        case "sms":
            return SmsChannel(load_gateway(settings.sms_gateway))
        case _:
            return LogChannel()
