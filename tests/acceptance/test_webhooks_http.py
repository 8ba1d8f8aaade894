"""Webhooks and users' addresses over HTTP, and the whole way from a claim to a signed message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from coupon_workers.notify.delivery import deliver
from coupon_workers.notify.relay import relay_outbox
from coupon_workers.runtime.services import Services
from tests.support.http_caller import Caller
from tests.support.http_shop import Shop
from tests.support.http_system import eventually
from tests.support.notify_receiver import Receiver

PUBLIC = "https://hooks.shop.example/coupons"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint that takes everything."""
    with Receiver().serving() as receiver:
        yield receiver


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop whose webhooks may lead to this machine."""
    return Shop(services, claim_rate=0, webhook_private=True)


@pytest.fixture
def admin(shop: Shop) -> Caller:
    """An operator."""
    return shop.caller("admin")


def _make(admin: Caller, url: str = PUBLIC, **fields: Any) -> Any:
    return admin.ask("POST", "/v1/webhooks", {"url": url, **fields}).ok(201)


def _claimed_and_told(shop: Shop, webhook_id: str, user: str = "ann") -> str:
    template_id = shop.desk.open()
    claim_id = shop.front.claimed(template_id, user)
    shop.settle(template_id)
    relay_outbox(shop.services)
    deliver(shop.services, f"webhook:{webhook_id}")
    return claim_id


def test_a_webhook_is_made_and_its_secret_is_shown_once(admin: Caller) -> None:
    """The list tells of it, without it."""
    made = _make(admin, events=["coupon.issued", "coupon.issued", "claim.rejected"], description="the till")

    secret = made.pop("secret")
    assert secret.startswith("whsec_") and len(secret) > 40
    assert ["coupon.issued", "claim.rejected"] == made["events"]
    assert (PUBLIC, "the till", None) == (made["url"], made["description"], made["disabled_at"])
    listed = admin.ask("GET", "/v1/webhooks")
    assert [made] == listed.ok()["items"]
    assert secret.encode() not in listed.body


def test_a_repeated_request_makes_one_webhook_and_shows_no_secret_again(admin: Caller) -> None:
    """Under an Idempotency-Key."""
    first, again = (admin.ask("POST", "/v1/webhooks", {"url": PUBLIC}, Idempotency_Key="k1").ok(201) for _ in range(2))

    assert {**first, "secret": None} == again
    assert 1 == len(admin.ask("GET", "/v1/webhooks").ok()["items"])
    admin.ask("POST", "/v1/webhooks", {"url": PUBLIC + "/x"}, Idempotency_Key="k1").problem(422, "IDEMPOTENCY_MISMATCH")


def test_webhooks_are_listed_in_pages(admin: Caller) -> None:
    """Each once, newest first."""
    made = [_make(admin, f"{PUBLIC}/{number}")["webhook_id"] for number in range(5)]

    listed, cursor = [], ""
    while cursor is not None:
        page = admin.ask("GET", f"/v1/webhooks?limit=2{cursor}").ok()
        listed += [webhook["webhook_id"] for webhook in page["items"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"

    assert made[::-1] == listed


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["url"]),
        ({"url": None}, ["url"]),
        ({"url": ""}, ["url"]),
        ({"url": 7}, ["url"]),
        ({"url": "ftp://shop.example"}, ["url"]),
        ({"url": "https://user:pw@shop.example"}, ["url"]),
        ({"url": "https://shöp.example"}, ["url"]),
        ({"url": "https://a\x00b.example"}, ["url"]),
        ({"url": "https://shop.example/" + "x" * 3_000}, ["url"]),
        ({"url": PUBLIC, "events": "coupon.issued"}, ["events"]),
        ({"url": PUBLIC, "events": ["coupon.eaten"]}, ["events.0"]),
        ({"url": PUBLIC, "events": [None]}, ["events.0"]),
        ({"url": PUBLIC, "events": ["coupon.issued"] * 13}, ["events"]),
        ({"url": PUBLIC, "description": ""}, ["description"]),
        ({"url": PUBLIC, "description": "a\nb"}, ["description"]),
        ({"url": PUBLIC, "description": "d" * 201}, ["description"]),
        ({"url": PUBLIC, "secret": "whsec_mine"}, ["secret"]),
    ],
)
def test_a_webhook_that_breaks_a_rule_is_refused(admin: Caller, body: dict[str, Any], fields: list[str]) -> None:
    """422, naming each field; nothing is made."""
    assert fields == admin.ask("POST", "/v1/webhooks", body).bad_fields()
    assert [] == admin.ask("GET", "/v1/webhooks").ok()["items"]


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://localhost:8000/", "http://10.1.1.1/", "http://[::1]/"])
def test_a_private_address_is_refused_unless_the_settings_allow_it(services: Services, url: str) -> None:
    """The default is no."""
    strict, open_minded = Shop(services), Shop(services, webhook_private=True)

    assert ["url"] == strict.caller("admin").ask("POST", "/v1/webhooks", {"url": url}).bad_fields()
    open_minded.caller("admin").ask("POST", "/v1/webhooks", {"url": url}).ok(201)


def test_only_an_administrator_sees_webhooks(shop: Shop) -> None:
    """And only a storefront sees users' addresses."""
    for caller, status, code in ((shop.front, 403, "FORBIDDEN"), (shop.caller(), 401, None)):
        for method, path in (
            ("POST", "/v1/webhooks"),
            ("GET", "/v1/webhooks"),
            ("DELETE", "/v1/webhooks/1"),
            ("GET", "/v1/webhooks/1/deliveries"),
            ("POST", "/v1/webhooks/1/deliveries/1/replay"),
        ):
            reply = caller.ask(method, path)
            assert status == reply.status, (method, path)
            assert code is None or reply.any_problem()["code"]
    assert 403 == shop.caller("admin").ask("GET", "/v1/users/ann/contacts/smtp").status


def test_a_delivery_is_in_the_log_and_can_be_replayed(shop: Shop, admin: Caller, receiver: Receiver) -> None:
    """The claim's coupon, the attempt, its answer; replayed under the same id."""
    made = _make(admin, receiver.url)
    claim_id = _claimed_and_told(shop, made["webhook_id"])
    path = f"/v1/webhooks/{made['webhook_id']}/deliveries"

    [told] = admin.ask("GET", path).ok()["items"]
    assert ("coupon.issued", "delivered", claim_id) == (told["event"], told["state"], told["data"]["coupon_no"])
    assert [(1, 200, None)] == [(one["attempt_no"], one["status"], one["error"]) for one in told["log"]]
    assert receiver.received[0].message_id == told["message_id"]
    assert (None, 1) == (told["next_attempt_at"], told["attempts"])

    replayed = admin.ask("POST", f"{path}/{told['delivery_id']}/replay").ok(202)
    deliver(shop.services, f"webhook:{made['webhook_id']}")

    assert ("pending", told["message_id"]) == (replayed["state"], replayed["message_id"])
    assert [told["message_id"]] * 2 == [arrived.message_id for arrived in receiver.received]
    assert [2] == [one["attempts"] for one in admin.ask("GET", f"{path}?state=delivered").ok()["items"]]
    assert [] == admin.ask("GET", f"{path}?state=dead").ok()["items"]


def test_deliveries_are_listed_in_pages(shop: Shop, admin: Caller, receiver: Receiver) -> None:
    """Each once, newest first."""
    made = _make(admin, receiver.url)
    claims = [_claimed_and_told(shop, made["webhook_id"], f"u{number}") for number in range(5)]

    listed, cursor = [], ""
    while cursor is not None:
        page = admin.ask("GET", f"/v1/webhooks/{made['webhook_id']}/deliveries?limit=2{cursor}").ok()
        listed += [delivery["data"]["coupon_no"] for delivery in page["items"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"

    assert claims[::-1] == listed


def test_an_ended_webhook_stays_in_the_list_and_takes_nothing(shop: Shop, admin: Caller, receiver: Receiver) -> None:
    """Ended again it is the same; its deliveries cannot be replayed."""
    made = _make(admin, receiver.url)
    _claimed_and_told(shop, made["webhook_id"])
    path = f"/v1/webhooks/{made['webhook_id']}"
    [told] = admin.ask("GET", f"{path}/deliveries").ok()["items"]

    ended = admin.ask("DELETE", path).ok()
    again = admin.ask("DELETE", path).ok()
    _claimed_and_told(shop, made["webhook_id"], "bob")

    assert ended == again
    assert "deleted" == ended["disabled_reason"] and ended["disabled_at"].endswith("Z")
    assert [ended] == admin.ask("GET", "/v1/webhooks").ok()["items"]
    assert 1 == len(receiver.received)
    admin.ask("POST", f"{path}/deliveries/{told['delivery_id']}/replay").problem(409, "WEBHOOK_DISABLED")


@pytest.mark.parametrize("webhook_id", ["7", "0", "-1", "x", "9223372036854775808", "1" * 40, "%20", "1.0"])
def test_what_does_not_exist_is_not_found(admin: Caller, webhook_id: str) -> None:
    """Whatever text is given for its number."""
    real = _make(admin)["webhook_id"]

    admin.ask("DELETE", f"/v1/webhooks/{webhook_id}").problem(404, "WEBHOOK_NOT_FOUND")
    admin.ask("GET", f"/v1/webhooks/{webhook_id}/deliveries").problem(404, "WEBHOOK_NOT_FOUND")
    admin.ask("POST", f"/v1/webhooks/{webhook_id}/deliveries/1/replay").problem(404, "WEBHOOK_NOT_FOUND")
    admin.ask("POST", f"/v1/webhooks/{real}/deliveries/{webhook_id}/replay").problem(404, "DELIVERY_NOT_FOUND")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("cursor=zzz", "cursor"),
        ("cursor=WyJhIl0=", "cursor"),
        ("cursor=WzkyMjMzNzIwMzY4NTQ3NzU4MDhd", "cursor"),
        ("colour=1", "colour"),
        ("state=lost", "state"),
    ],
)
def test_a_page_that_cannot_be_is_refused(admin: Caller, query: str, field: str) -> None:
    """422, naming the parameter."""
    webhook_id = _make(admin)["webhook_id"]

    assert [field] == admin.ask("GET", f"/v1/webhooks/{webhook_id}/deliveries?{query}").bad_fields()
    assert [field] == admin.ask("GET", f"/v1/webhooks?{query}").bad_fields()


def test_a_users_address_is_set_read_and_forgotten(shop: Shop) -> None:
    """By channel; a user's id may hold whatever ids may."""
    for user in ("ann", "a/b/contacts/smtp", "張偉"):
        path = f"/v1/users/{user.replace('/', '%2F')}/contacts"
        told = shop.front.ask("PUT", f"{path}/smtp", {"address": "ann@users.example"}, Idempotency_Key=f"k{len(user)}")
        shop.front.ask("PUT", f"{path}/sms", {"address": "+8613800138000"}).ok()

        assert (user, "smtp", "ann@users.example") == tuple(
            told.ok()[name] for name in ("user_id", "channel", "address")
        )
        assert told.json == shop.front.ask("GET", f"{path}/smtp").ok()
        assert told.json == shop.front.ask("DELETE", f"{path}/smtp").ok()
        shop.front.ask("GET", f"{path}/smtp").problem(404, "CONTACT_NOT_FOUND")
        shop.front.ask("DELETE", f"{path}/smtp").problem(404, "CONTACT_NOT_FOUND")
        assert "+8613800138000" == shop.front.ask("GET", f"{path}/sms").ok()["address"]


@pytest.mark.parametrize(
    ("channel", "body", "field"),
    [
        ("smtp", {}, "address"),
        ("smtp", {"address": None}, "address"),
        ("smtp", {"address": 7}, "address"),
        ("smtp", {"address": ""}, "address"),
        ("smtp", {"address": "ann"}, "address"),
        ("smtp", {"address": "Ann <ann@users.example>"}, "address"),
        ("smtp", {"address": "a@b.example\r\nBcc: eve@evil.example"}, "address"),
        ("smtp", {"address": "a@b.example,eve@evil.example"}, "address"),
        ("smtp", {"address": "a" * 300 + "@b.example"}, "address"),
        ("smtp", {"address": "張@b.example"}, "address"),
        ("sms", {"address": "13800138000"}, "address"),
        ("sms", {"address": "+0800"}, "address"),
        ("sms", {"address": "+8613800138000\n"}, "address"),
        ("sms", {"address": "+8613800138000", "name": "ann"}, "name"),
    ],
)
def test_an_address_that_breaks_a_rule_is_refused(shop: Shop, channel: str, body: dict[str, Any], field: str) -> None:
    """422, naming the field; nothing is kept."""
    assert [field] == shop.front.ask("PUT", f"/v1/users/ann/contacts/{channel}", body).bad_fields()
    shop.front.ask("GET", f"/v1/users/ann/contacts/{channel}").problem(404, "CONTACT_NOT_FOUND")


def test_a_channel_or_a_user_that_cannot_be_is_refused(shop: Shop) -> None:
    """404 for the channel, 422 for the user."""
    for channel in ("log", "pigeon", "SMTP"):
        for method, body in (("PUT", {"address": "ann@users.example"}), ("GET", None), ("DELETE", None)):
            shop.front.ask(method, f"/v1/users/ann/contacts/{channel}", body).problem(404, "CHANNEL_NOT_FOUND")
    assert ["user_id"] == shop.front.ask("GET", "/v1/users/a%20b/contacts/smtp").bad_fields()
    assert ["user_id"] == shop.front.ask("GET", f"/v1/users/{'u' * 65}/contacts/smtp").bad_fields()


def test_a_claim_becomes_a_signed_message_through_every_process(system: Any, receiver: Receiver) -> None:
    """Front, worker, scheduler, worker again, within seconds; the log of deliveries tells of it."""
    made = system.admin.ask("POST", "/v1/webhooks", {"url": receiver.url, "events": ["coupon.issued"]}).ok(201)
    template_id = system.desk.open(notify=False)
    claim_id = system.front.claimed(template_id, "ann")

    arrived = receiver.next_arrival()

    body = arrived.verified(made["secret"])
    assert "coupon.issued" == body["type"]
    assert (claim_id, template_id, "ann") == tuple(
        body["data"][name] for name in ("coupon_no", "template_id", "user_id")
    )
    path = f"/v1/webhooks/{made['webhook_id']}/deliveries?state=delivered"
    eventually(lambda: bool(system.admin.ask("GET", path).ok()["items"]))
    [told] = system.admin.ask("GET", path).ok()["items"]
    assert arrived.message_id == told["message_id"]
    system.admin.ask("DELETE", f"/v1/webhooks/{made['webhook_id']}").ok()
