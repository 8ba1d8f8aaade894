"""The relay: each event of the outbox reaches those who are to hear of it, once."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy import text

from coupon_workers.notify.relay import TURN_S
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import deliver_messages
from tests.conftest import PostBox
from tests.support.notify_bureau import Bureau
from tests.support.sale import open_sale

UNDELIVERED = "SELECT count(*) FROM outbox WHERE delivered_at IS NULL"


@pytest.fixture
def bureau(services: Services) -> Bureau:
    """A bureau with nobody to tell."""
    return Bureau(services)


def test_an_event_nobody_asked_for_is_only_marked(bureau: Bureau, post: PostBox) -> None:
    """No row is left that waits for somebody."""
    bureau.template()
    bureau.tell(1)

    assert 1 == bureau.relay()

    assert ([(0,)], [], []) == (bureau.rows(UNDELIVERED), bureau.states(), post.sent)


def test_every_webhook_that_asked_for_an_event_gets_it(bureau: Bureau, post: PostBox) -> None:
    """Those that named none get all; an ended one gets nothing. Each is woken once."""
    everything = bureau.webhook("https://a.example/")
    issues = bureau.webhook("https://b.example/", "coupon.issued", "coupon.expired")
    bureau.webhook("https://c.example/", "coupon.locked")
    ended = bureau.webhook("https://d.example/")
    bureau.run("UPDATE webhook SET disabled_at = now(), disabled_reason = 'x' WHERE webhook_id = :id",
               id=ended.record.webhook_id)  # fmt: skip
    bureau.tell(1)
    bureau.tell(2, "claim.rejected", reason="SOLD_OUT")

    bureau.relay()

    targets = [f"webhook:{made.record.webhook_id}" for made in (everything, issues)]
    routed = bureau.rows("SELECT target, coupon_id FROM delivery ORDER BY outbox_id, target")
    assert sorted([(targets[0], 1), (targets[1], 1), (targets[0], 2)]) == sorted(routed)
    assert sorted(map(str, map(deliver_messages, targets))) == sorted(map(str, post.sent))


def test_a_webhook_does_not_hear_of_what_was_before_it(bureau: Bureau) -> None:
    """An old outbox is no flood for a new endpoint."""
    bureau.tell(1)
    bureau.run("UPDATE outbox SET created_at = created_at - interval '1 minute'")
    bureau.webhook("https://a.example/")
    bureau.tell(2)

    bureau.relay()

    assert [(2, "pending", 0)] == bureau.states()


def test_data_of_events_tell_what_a_program_needs(bureau: Bureau) -> None:
    """Numbers as strings; a rejected claim has a claim id and a reason, and no coupon."""
    template_id = str(bureau.template())
    bureau.webhook("https://a.example/")
    bureau.tell(2**62)
    bureau.tell(5, "coupon.locked", status="locked", order_no="o-1", flow_no=2)
    bureau.tell(6, "claim.rejected", reason="PAUSED")

    bureau.relay()

    known = {"template_id": template_id, "user_id": "ann"}
    assert [
        known | {"coupon_no": str(2**62), "status": "unused"},
        known | {"coupon_no": "5", "status": "locked", "order_no": "o-1", "flow_no": 2},
        known | {"claim_id": "6", "status": "rejected", "reason": "PAUSED"},
    ] == [row[0] for row in bureau.rows("SELECT payload FROM delivery ORDER BY outbox_id")]


def test_users_are_told_by_every_channel_of_templates_that_notify(services: Services) -> None:
    """Of what concerns them alone; webhooks hear of everything all the same."""
    bureau = Bureau(services, message_channels="log,sms")
    bureau.template()
    bureau.webhook("https://a.example/")
    bureau.tell(1)
    bureau.tell(1, "coupon.locked")
    bureau.run("UPDATE outbox SET template_id = 9 WHERE event = 'coupon.locked'")

    bureau.relay()
    bureau.run("UPDATE coupon_template SET notify = false")
    bureau.tell(2)
    bureau.relay()

    routed = bureau.rows("SELECT coupon_id, event, split_part(target, ':', 1) FROM delivery ORDER BY outbox_id, target")
    assert [
        (1, "coupon.issued", "log"), (1, "coupon.issued", "sms"), (1, "coupon.issued", "webhook"),
        (1, "coupon.locked", "webhook"), (2, "coupon.issued", "webhook"),
    ] == routed  # fmt: skip


def test_routing_twice_is_harmless(bureau: Bureau) -> None:
    """A commit whose answer was lost, and was done again by hand."""
    bureau.webhook("https://a.example/")
    bureau.tell(1)
    bureau.relay()
    bureau.run("UPDATE outbox SET delivered_at = NULL")

    assert 1 == bureau.relay()

    assert [(1, "pending", 0)] == bureau.states()


def test_a_small_number_that_appears_late_is_passed_on(bureau: Bureau) -> None:
    """Numbers are given before the commit: the transaction of the first event ends after the second was routed."""
    bureau.webhook("https://a.example/")
    with bureau.services.engine.connect() as slow, slow.begin():
        slow.execute(
            text("INSERT INTO outbox (event, user_id, template_id, coupon_id) VALUES ('coupon.issued', 'ann', 1, 1)")
        )
        bureau.tell(2)
        assert 1 == bureau.relay()
        slow.commit()

    assert 1 == bureau.relay()

    assert [(1, "pending", 0), (2, "pending", 0)] == bureau.states()


def test_a_relay_leaves_the_outbox_to_the_one_at_work(bureau: Bureau) -> None:
    """It does not wait, and it wakes nobody: the other does."""
    bureau.webhook("https://a.example/")
    for number in range(50):
        bureau.tell(number + 1)
    ready = threading.Barrier(4)
    passed_on: list[int] = []

    def relay() -> None:
        ready.wait()
        passed_on.append(bureau.relay(chunk=5))

    threads = [threading.Thread(target=relay) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed_on.append(bureau.relay())

    assert 50 == sum(passed_on)
    assert [(number + 1, "pending", 0) for number in range(50)] == bureau.states()


def test_a_turn_ends_and_the_next_goes_on(bureau: Bureau) -> None:
    """In chunks, the oldest first."""
    assert timedelta(seconds=TURN_S) < timedelta(seconds=10)
    bureau.webhook("https://a.example/")
    for number in range(5):
        bureau.tell(number + 1)

    first = bureau.relay(chunk=2, turn_s=0)

    assert (2, [(3,)]) == (first, bureau.rows(UNDELIVERED))
    assert [1, 2] == [row[0] for row in bureau.states()]
    assert (3, [(0,)]) == (bureau.relay(chunk=2), bureau.rows(UNDELIVERED))


def test_a_target_that_is_left_alone_is_not_woken(bureau: Bureau, post: PostBox) -> None:
    """Nor one whose messages are due later."""
    paused, later = bureau.webhook("https://a.example/"), bureau.webhook("https://b.example/")
    bureau.run(
        "INSERT INTO delivery_pause VALUES (:target, 1, now() + interval '1 minute')",
        target=f"webhook:{paused.record.webhook_id}",
    )
    bureau.tell(1)
    bureau.relay()
    bureau.run("UPDATE delivery SET next_attempt_at = now() + interval '1 hour'")
    post.sent.clear()

    bureau.relay()
    assert [] == post.sent

    bureau.move(hours=2)
    bureau.relay()
    assert 2 == len(post.sent) and deliver_messages(f"webhook:{later.record.webhook_id}") in post.sent


def test_a_claim_is_told_of_once_it_is_settled(services: Services) -> None:
    """The whole way from the gate to the delivery, for a template that does not notify its users."""
    bureau = Bureau(services)
    bureau.webhook("https://a.example/")
    sale = open_sale(services, notify=False)
    claim_id = sale.claim("ann").claim_id
    sale.drain()

    bureau.relay()

    assert [(claim_id, "pending", 0)] == bureau.states()
