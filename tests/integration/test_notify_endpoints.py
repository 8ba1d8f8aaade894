"""Endpoints of webhooks that are away, slow, gone or not what they seem: nobody is held up, nothing leads inside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coupon_workers.errors import Conflict
from coupon_workers.notify import delivery, webhook_channel
from coupon_workers.notify.delivery_log import list_deliveries, replay_delivery
from coupon_workers.notify.webhook import NewWebhook, list_webhooks
from coupon_workers.runtime.services import Services
from tests.support.notify_bureau import Bureau
from tests.support.notify_certificate import server_context, write_certificate
from tests.support.notify_receiver import Receiver


def test_an_endpoint_that_is_gone_is_told_nothing_any_more(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook
) -> None:
    """410 ends the webhook; what was on its way is discarded, and nothing can be replayed."""
    bureau.route(1, 2)
    receiver.answers = [410]

    bureau.deliver(webhook)
    bureau.route(3)

    [record] = list_webhooks(bureau.services, limit=9)
    assert ("the endpoint answered 410 Gone", 1) == (record.disabled_reason, len(receiver.received))
    assert [(1, "discarded", 1), (2, "discarded", 0)] == bureau.states()
    [_, first] = list_deliveries(bureau.services, record.webhook_id, limit=9)
    with pytest.raises(Conflict, match="ended"):
        replay_delivery(bureau.services, record.webhook_id, first.delivery_id)


def test_a_redirect_is_not_followed(bureau: Bureau, receiver: Receiver, webhook: NewWebhook) -> None:
    """Wherever it leads; it counts as a failure."""
    with Receiver().serving() as other:
        receiver.answers, receiver.location = [307], other.url
        bureau.route(1)

        bureau.deliver(webhook)

        assert [] == other.received
    assert ([(1, "pending", 1)], ["the endpoint answered 307"]) == (bureau.states(), bureau.errors())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_an_address_that_is_not_public_is_not_connected_to(services: Services, receiver: Receiver, host: str) -> None:
    """Whatever was checked when the webhook was made: a name may lead elsewhere since (DNS rebinding)."""
    bureau = Bureau(services)
    webhook = bureau.webhook(receiver.url.replace("127.0.0.1", host))
    bureau.route(1)
    strict = Bureau(services, webhook_private=False)

    strict.deliver(webhook)

    assert ([], [(1, "pending", 1)]) == (receiver.received, bureau.states())
    assert "not public" in str(bureau.errors()[0])


def test_an_endpoint_that_cannot_be_reached_is_left_alone_for_a_while(bureau: Bureau, receiver: Receiver) -> None:
    """One attempt, not one for each message; longer each time; then everything goes at once."""
    dead = bureau.webhook("http://127.0.0.1:1/")
    bureau.route(*range(1, 6))

    tried = [bureau.deliver(dead), bureau.deliver(dead)]
    bureau.move(seconds=2)
    tried += [bureau.deliver(dead), bureau.deliver(dead)]

    assert [1, 0, 1, 0] == tried
    assert [(2,)] == bureau.rows("SELECT failures FROM delivery_pause")
    bureau.run("UPDATE webhook SET url = :url", url=receiver.url)
    bureau.move(minutes=6)
    bureau.deliver(dead)
    assert 5 == len(receiver.received)
    assert [] == bureau.rows("SELECT 1 FROM delivery_pause")


def test_lanes_that_fail_together_count_as_one_failure(bureau: Bureau) -> None:
    """The first to notice ends the turn for all, and the pause is a short one."""
    dead = bureau.webhook("http://127.0.0.1:1/")
    bureau.route(*range(1, 61))

    assert 1 <= bureau.deliver(dead) <= delivery.LANES

    assert [(1,)] == bureau.rows("SELECT failures FROM delivery_pause")
    assert [(0,)] == bureau.rows("SELECT count(*) FROM delivery WHERE leased_until IS NOT NULL")


@pytest.fixture
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """Says whether this machine trusts the tests' certificate."""

    def trust(yes: bool) -> None:
        webhook_channel._trust.cache_clear()
        if yes:
            monkeypatch.setenv("SSL_CERT_FILE", str(write_certificate(tmp_path)))

    yield trust
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    webhook_channel._trust.cache_clear()


@pytest.mark.parametrize(
    ("host", "trusted", "delivered"),
    [("localhost", True, True), ("localhost", False, False), ("127.0.0.1", True, False)],
)
def test_certificates_are_verified_against_the_name(
    bureau: Bureau, tmp_path: Path, trusting: Callable[[bool], None], host: str, trusted: bool, delivered: bool
) -> None:
    """Although it is an address that is connected to; an unknown authority or another name is no endpoint."""
    trusting(trusted)
    with Receiver(server_context(tmp_path)).serving() as secure:
        webhook = bureau.webhook(secure.url.replace("127.0.0.1", host))
        bureau.route(1)

        bureau.deliver(webhook)

        assert delivered == bool(secure.received)
    assert delivered or "CERTIFICATE_VERIFY_FAILED" in str(bureau.errors()[0])


def test_a_slow_endpoint_is_not_waited_for_long(
    bureau: Bureau, receiver: Receiver, webhook: NewWebhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole exchange has a deadline, and the other endpoint gets its message meanwhile."""
    monkeypatch.setattr(webhook_channel, "SEND_S", 0.3)
    with Receiver().serving() as other:
        quick = bureau.webhook(other.url)
        bureau.route(1, 2)
        receiver.may_answer.clear()
        slow = threading.Thread(target=bureau.deliver, args=(webhook,))
        slow.start()
        receiver.next_arrival()

        bureau.deliver(quick)
        slow.join()

        assert 2 == len(other.received)
    assert 1 == len(receiver.received)
    assert {("pending", 1), ("pending", 0)} == {
        (row[0], row[1])
        for row in bureau.rows(
            "SELECT state, attempts FROM delivery WHERE webhook_id = :id", id=webhook.record.webhook_id
        )
    }


def test_an_endless_answer_is_not_read_to_its_end(bureau: Bureau, receiver: Receiver, webhook: NewWebhook) -> None:
    """The status is all that counts."""
    receiver.content = b"x" * 3_000_000
    bureau.route(1, 2)

    bureau.deliver(webhook)

    assert [(1, "delivered", 1), (2, "delivered", 1)] == bureau.states()
