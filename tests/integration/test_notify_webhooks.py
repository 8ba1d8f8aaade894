"""Delivery to webhooks: signed, retried by the schedule, in order for each coupon, and at least once."""

from __future__ import annotations

import threading

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from coupon_workers.errors import NotFound
from coupon_workers.notify import delivery
from coupon_workers.notify.backoff import WAITS
from coupon_workers.notify.delivery_lease import Taken
from coupon_workers.notify.delivery_log import list_deliveries, replay_delivery
from coupon_workers.notify.webhook import NewWebhook, end_webhook
from coupon_workers.runtime.task import deliver_messages
from tests.conftest import PostBox
from tests.support.crash import dies_at
from tests.support.notify_bureau import Bureau
from tests.support.notify_receiver import Receiver


def _coupons(receiver: Receiver) -> list[str]:
    return [arrived.json["data"]["coupon_no"] for arrived in receiver.received]


def test_a_message_is_signed_and_says_what_happened(bureau: Bureau, receiver: Receiver, webhook: NewWebhook) -> None:
    """Standard Webhooks: its own library accepts it, with the right secret only."""
    template_id = bureau.template()
    bureau.route(2**62)

    assert 1 == bureau.deliver(webhook)

    [arrived] = receiver.received
    body = arrived.verified(webhook.secret)
    assert {"type", "timestamp", "data"} == set(body)
    assert "coupon.issued" == body["type"]
    assert body["timestamp"].endswith("Z")
    expected = {"coupon_no": str(2**62), "template_id": str(template_id), "user_id": "ann", "status": "unused"}
    assert expected == body["data"]
    assert ("/hook", "application/json") == (arrived.path, arrived.headers["content-type"])
    assert arrived.message_id.startswith("msg_")
    with pytest.raises(WebhookVerificationError):
        arrived.verified("whsec_" + "A" * 43 + "=")
    assert [(2**62, "delivered", 1)] == bureau.states()


def test_texts_of_any_script_are_signed_as_they_are_sent(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook
) -> None:
    """Bytes, not characters."""
    bureau.tell(1, user="張偉🎟", order_no='"\\/é')
    bureau.relay()

    bureau.deliver(webhook)

    data = receiver.received[0].verified(webhook.secret)["data"]
    assert ("張偉🎟", '"\\/é') == (data["user_id"], data["order_no"])


def test_an_endpoint_that_fails_is_asked_again_by_the_schedule(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook
) -> None:
    """Five seconds, five minutes, half an hour; always under the same id, and every attempt is in the log."""
    bureau.route(1)
    receiver.answers = [500, 400, 302]

    tried = [bureau.deliver(webhook)]
    for wait in WAITS[:3]:
        assert 0 == bureau.deliver(webhook)
        bureau.move(seconds=wait.total_seconds())
        tried.append(bureau.deliver(webhook))

    assert [1, 1, 1, 1] == tried
    assert 1 == len({arrived.message_id for arrived in receiver.received})
    assert all(arrived.verified(webhook.secret) for arrived in receiver.received)
    [record] = list_deliveries(bureau.services, webhook.record.webhook_id, limit=9)
    assert ("delivered", 4, 200, None) == (record.state, record.attempts, record.last_status, record.last_error)
    assert [500, 400, 302, 200] == [attempt.status for attempt in record.log]
    assert [1, 2, 3, 4] == [attempt.attempt_no for attempt in record.log]


def test_after_the_last_attempt_it_is_dead_and_can_be_replayed(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook, post: PostBox
) -> None:
    """With the same id, and the whole schedule before it again."""
    bureau.route(1)
    receiver.answers = [404] * (len(WAITS) + 1)
    for wait in WAITS:
        assert 1 == bureau.deliver(webhook)
        bureau.move(seconds=wait.total_seconds())
    assert 1 == bureau.deliver(webhook)
    assert [(1, "dead", 10)] == bureau.states()
    [dead] = list_deliveries(bureau.services, webhook.record.webhook_id, limit=9, state="dead")
    receiver.answers = [404]
    post.sent.clear()

    replayed = replay_delivery(bureau.services, webhook.record.webhook_id, dead.delivery_id)
    sent = bureau.deliver(webhook)

    assert [deliver_messages(f"webhook:{webhook.record.webhook_id}")] == post.sent
    assert ("pending", dead.message_id) == (replayed.state, replayed.message_id)
    assert (1, [(1, "pending", 11)]) == (sent, bureau.states())
    bureau.move(seconds=5)
    bureau.deliver(webhook)
    assert [(1, "delivered", 12)] == bureau.states()
    assert {dead.message_id} == {arrived.message_id for arrived in receiver.received}


def test_what_was_delivered_can_be_replayed_too(bureau: Bureau, receiver: Receiver, webhook: NewWebhook) -> None:
    """A receiver that lost its data asks for it."""
    bureau.route(1)
    bureau.deliver(webhook)
    [done] = list_deliveries(bureau.services, webhook.record.webhook_id, limit=9, state="delivered")

    replay_delivery(bureau.services, webhook.record.webhook_id, done.delivery_id)
    bureau.deliver(webhook)

    assert [done.message_id] * 2 == [arrived.message_id for arrived in receiver.received]


def test_events_of_a_coupon_keep_their_order_when_the_first_fails(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook
) -> None:
    """The second waits, and other coupons do not."""
    bureau.tell(1)
    bureau.tell(1, "coupon.locked", status="locked")
    bureau.tell(2)
    bureau.relay()
    receiver.answers = [400]

    bureau.deliver(webhook)
    first_round = [(arrived.json["type"], arrived.json["data"]["coupon_no"]) for arrived in receiver.received]
    bureau.move(seconds=5)
    bureau.deliver(webhook)

    assert [("coupon.issued", "1"), ("coupon.issued", "2")] == first_round
    assert ["coupon.issued", "coupon.locked"] == [arrived.json["type"] for arrived in receiver.received[2:]]
    assert [(1, "delivered", 2), (1, "delivered", 1), (2, "delivered", 1)] == bureau.states()


def test_a_dead_event_lets_the_next_of_its_coupon_pass(bureau: Bureau, receiver: Receiver, webhook: NewWebhook) -> None:
    """A message that nobody takes does not hold a coupon up for ever."""
    bureau.tell(1)
    bureau.tell(1, "coupon.locked")
    bureau.relay()
    bureau.run("UPDATE delivery SET step = 9 WHERE event = 'coupon.issued'")
    receiver.answers = [400]

    bureau.deliver(webhook)

    assert [(1, "dead", 1), (1, "delivered", 1)] == bureau.states()


def test_a_worker_killed_between_the_sending_and_the_writing_sends_again_under_the_same_id(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its lease has run out, not before."""
    bureau.route(1)

    with dies_at(monkeypatch, "deliver.after_send"):
        bureau.deliver(webhook)

    assert ([(1, "pending", 0)], 0) == (bureau.states(), bureau.deliver(webhook))
    bureau.run("UPDATE delivery SET leased_until = clock_timestamp()")
    assert 1 == bureau.deliver(webhook)
    assert 2 == len(receiver.received)
    assert 1 == len({arrived.message_id for arrived in receiver.received})
    assert [(1, "delivered", 1)] == bureau.states()


def test_a_worker_whose_lease_ran_out_writes_nothing_over_the_next_ones(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook
) -> None:
    """The fence: it was so slow that another took its message, which failed; the first one's word comes too late."""
    bureau.route(1)
    receiver.may_answer.clear()
    slow = threading.Thread(target=bureau.deliver, args=(webhook,))
    slow.start()
    receiver.next_arrival()
    bureau.run("UPDATE delivery SET leased_until = clock_timestamp() + interval '1 hour'")

    receiver.may_answer.set()
    slow.join()

    assert [(1, "pending", 0)] == bureau.states()
    assert [] == bureau.rows("SELECT 1 FROM delivery_attempt")


def test_workers_at_once_send_each_message_once(bureau: Bureau, receiver: Receiver, webhook: NewWebhook) -> None:
    """And the events of a coupon in their order."""
    for step in ("coupon.issued", "coupon.locked", "coupon.redeemed"):
        for coupon in range(1, 16):
            bureau.tell(coupon, step)
    bureau.relay()
    ready = threading.Barrier(4)

    def work() -> None:
        ready.wait()
        while any(state == "pending" for _, state, _ in bureau.states()):
            bureau.deliver(webhook)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 45 == len(receiver.received)
    assert {("delivered", 1)} == {row[1:] for row in bureau.states()}
    for coupon in range(1, 16):
        told = [arrived.json["type"] for arrived in receiver.received if _is_of(arrived.json, coupon)]
        assert ["coupon.issued", "coupon.locked", "coupon.redeemed"] == told


def _is_of(body: dict[str, dict[str, str]], coupon: int) -> bool:
    return body["data"]["coupon_no"] == str(coupon)


def test_a_turn_has_several_lanes_once_there_is_much_to_send(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook
) -> None:
    """Four messages are on their way at once, each in a lane, and what one lane sends no other does."""
    bureau.route(*range(1, 61))
    receiver.may_answer.clear()
    sent: list[int] = []
    turn = threading.Thread(target=lambda: sent.append(bureau.deliver(webhook, turn_s=60)))
    turn.start()
    for _ in range(delivery.LANES):
        receiver.next_arrival()

    receiver.may_answer.set()
    turn.join()

    assert [60] == sent
    assert sorted(map(str, range(1, 61))) == sorted(_coupons(receiver))


def test_a_turn_ends_though_more_is_due(bureau: Bureau, receiver: Receiver, webhook: NewWebhook) -> None:
    """What is left is in nobody's hand."""
    bureau.route(*range(1, 15))

    assert 0 == bureau.deliver(webhook, turn_s=0)

    assert [(0,)] == bureau.rows("SELECT count(*) FROM delivery WHERE leased_until IS NOT NULL")
    assert 14 == bureau.deliver(webhook)


def test_a_fault_of_ours_is_retried_and_holds_nothing_up(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that cannot even be written down as JSON."""
    bureau.route(1, 2)
    real = delivery._message

    def broken(taken: Taken, letter: object) -> object:
        if taken.payload["coupon_no"] == "1":
            raise ValueError("no words")
        return real(taken, None)

    monkeypatch.setattr(delivery, "_message", broken)
    bureau.deliver(webhook)

    assert [(1, "pending", 1), (2, "delivered", 1)] == bureau.states()
    assert ["ValueError on our side", None] == bureau.errors()


def test_an_ended_webhook_discards_what_was_on_its_way(bureau: Bureau, receiver: Receiver, webhook: NewWebhook) -> None:
    """And its queue's messages do nothing."""
    bureau.route(1)

    end_webhook(bureau.services, webhook.record.webhook_id, "deleted")

    assert (0, [(1, "discarded", 0)], ["deleted"]) == (bureau.deliver(webhook), bureau.states(), bureau.errors())
    assert [] == receiver.received


def test_what_does_not_exist_is_not_found(bureau: Bureau, webhook: NewWebhook) -> None:
    """Another webhook's delivery neither."""
    other = bureau.webhook("http://127.0.0.1:1/", "coupon.revoked")
    bureau.route(1)
    [delivery] = list_deliveries(bureau.services, webhook.record.webhook_id, limit=9)

    with pytest.raises(NotFound, match="no such webhook"):
        list_deliveries(bureau.services, 5, limit=9)
    with pytest.raises(NotFound, match="no such delivery"):
        replay_delivery(bureau.services, other.record.webhook_id, delivery.delivery_id)
