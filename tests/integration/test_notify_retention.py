"""Events and deliveries are forgotten after thirty days, and not before."""

from __future__ import annotations

from datetime import timedelta

import pytest

from coupon_workers.notify import retention, webhook
from coupon_workers.notify.retention import KEEP, forget_messages
from coupon_workers.notify.webhook import end_webhook
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.notify_bureau import Bureau

COUNTS = (
    "SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM delivery), (SELECT count(*) FROM delivery_attempt)"
)


def test_what_is_old_is_forgotten_in_chunks(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Undelivered events stay, however old; an ended webhook goes with the last of its deliveries, and its pause."""
    monkeypatch.setattr(retention, "CHUNK", 2)
    bureau = Bureau(services)
    made = bureau.webhook("http://127.0.0.1:1/")
    for coupon in range(1, 6):
        bureau.tell(coupon)
    bureau.relay()
    bureau.deliver(made)
    end_webhook(services, made.record.webhook_id, "deleted")
    bureau.tell(6)
    now = utc_now()
    assert 1 == len(bureau.rows("SELECT FROM delivery_pause"))

    kept = forget_messages(services, now + KEEP - timedelta(minutes=1))
    assert (0, 0, [(6, 5, 1)]) == (kept.events, kept.deliveries, bureau.rows(COUNTS))

    forgotten = forget_messages(services, now + KEEP + timedelta(minutes=1))

    assert (5, 5) == (forgotten.events, forgotten.deliveries)
    assert ([(1, 0, 0)], []) == (bureau.rows(COUNTS), bureau.rows("SELECT 1 FROM webhook"))
    assert [] == bureau.rows("SELECT FROM delivery_pause")


def test_what_was_too_much_to_discard_with_a_webhook_is_discarded_later(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ending a webhook answers soon, however much is on its way to it."""
    monkeypatch.setattr(webhook, "DISCARDED_AT_ONCE", 2)
    bureau = Bureau(services)
    made = bureau.webhook("http://127.0.0.1:1/")
    for coupon in range(1, 6):
        bureau.tell(coupon)
    bureau.relay()

    end_webhook(services, made.record.webhook_id, "deleted")
    at_once = [state for _, state, _ in bureau.states()]
    forget_messages(services, utc_now())

    assert (2, 3) == (at_once.count("discarded"), at_once.count("pending"))
    assert ["discarded"] * 5 == [state for _, state, _ in bureau.states()]
