"""Giving a coupon to another user over HTTP (API.md, Wallet)."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from tests.support.gift import at_once
from tests.support.http_caller import Caller
from tests.support.http_reply import Reply
from tests.support.http_shop import Shop

TERMS = ("template_id", "template_name", "type", "amount", "max_discount", "currency", "threshold")
VALIDITY = ("valid_from", "valid_to")


def transfer(caller: Caller, user: str, coupon_no: Any, to_user: Any, **headers: str) -> Reply:
    """``POST /v1/users/{user}/coupons/{coupon_no}/transfer``."""
    return caller.ask("POST", f"/v1/users/{user}/coupons/{coupon_no}/transfer", {"to_user_id": to_user}, **headers)


def given(shop: Shop, user: str, request: str = "r1", **fields: Any) -> str:
    """A coupon of the user, of a template of its own; its number."""
    template_id = shop.desk.open(**{"transferable": True} | fields)
    coupon_no = shop.front.claimed(template_id, user, request)
    shop.settle(template_id)
    return coupon_no


def change(shop: Shop, coupon_no: str, assignments: str) -> None:
    """Move a coupon behind everybody's back."""
    with shop.services.engine.begin() as connection:
        connection.execute(text(f"UPDATE coupon SET {assignments} WHERE coupon_id = {coupon_no}"))


def test_the_receivers_coupon_is_answered(shop: Shop) -> None:
    """The same worth and validity under another number; and both wallets show it."""
    coupon_no = given(shop, "ann")
    before = shop.front.coupon("ann", coupon_no).ok()

    received = transfer(shop.front, "ann", coupon_no, "bob").ok(201)

    said = {"user_id": "bob", "status": "unused", "source": "transfer", "order_no": None, "locked_until": None}
    expected = {name: before[name] for name in (*TERMS, *VALIDITY)} | said
    assert expected == {name: received[name] for name in expected}
    assert coupon_no != received["coupon_no"]
    assert "history" not in received
    assert [received] == shop.front.wallet("bob").ok()["items"]
    assert [(coupon_no, "transferred")] == [
        (coupon["coupon_no"], coupon["status"]) for coupon in shop.front.wallet("ann").ok()["items"]
    ]
    shop.assert_sound()


def test_its_history_says_who_did_it(shop: Shop) -> None:
    """The key that asked, and from which coupon the new one comes."""
    coupon_no = given(shop, "ann")
    received = transfer(shop.front, "ann", coupon_no, "bob").ok(201)["coupon_no"]

    old, new = shop.front.coupon("ann", coupon_no).ok(), shop.front.coupon("bob", received).ok()

    assert ("transfer", "unused", "transferred") == tuple(
        old["history"][1][name] for name in ("action", "from_status", "to_status")
    )
    assert old["history"][1]["operator"].startswith("key:")
    assert ("issue", "transfer") == (new["history"][0]["action"], new["history"][0]["operator"])
    assert coupon_no in new["history"][0]["request_id"]


def test_an_idempotency_key_answers_again(shop: Shop) -> None:
    """The stored answer, also when the receiver has given his coupon on; without the key, the coupon as it is now."""
    coupon_no = given(shop, "ann")
    first = transfer(shop.front, "ann", coupon_no, "bob", Idempotency_Key="gift-1").ok(201)
    transfer(shop.front, "bob", first["coupon_no"], "cat").ok(201)

    again = transfer(shop.front, "ann", coupon_no, "bob", Idempotency_Key="gift-1")
    bare = transfer(shop.front, "ann", coupon_no, "bob").ok(201)

    assert (first, "true") == (again.ok(201), again.headers["idempotency-replayed"])
    assert (first["coupon_no"], "transferred") == (bare["coupon_no"], bare["status"])
    transfer(shop.front, "ann", coupon_no, "dan", Idempotency_Key="gift-1").problem(422, "IDEMPOTENCY_MISMATCH")


def test_a_coupon_given_away_goes_to_nobody_else(shop: Shop) -> None:
    """409 with what has become of it."""
    coupon_no = given(shop, "ann")
    transfer(shop.front, "ann", coupon_no, "bob").ok(201)

    problem = transfer(shop.front, "ann", coupon_no, "cat").problem(409, "COUPON_NOT_AVAILABLE")

    assert "transferred" == problem["coupon_status"]
    assert "order_no" not in problem
    assert [] == shop.front.wallet("cat").ok()["items"]


def test_a_locked_coupon_names_its_order(shop: Shop) -> None:
    """So that the storefront can say why."""
    coupon_no = given(shop, "ann")
    change(shop, coupon_no, "status = 'locked', order_no = 'order-7'")

    problem = transfer(shop.front, "ann", coupon_no, "bob").problem(409, "COUPON_NOT_AVAILABLE")

    assert ("locked", "order-7") == (problem["coupon_status"], problem["order_no"])


def test_what_cannot_be_given_away_is_refused(shop: Shop) -> None:
    """A template that forbids it, an ended coupon, another user's, one that does not exist."""
    kept, ended = given(shop, "ann", transferable=False), given(shop, "ann")
    later = shop.at(datetime.fromisoformat(shop.front.coupon("ann", ended).ok()["valid_to"]))

    transfer(shop.front, "ann", kept, "bob").problem(409, "NOT_TRANSFERABLE")
    transfer(later, "ann", ended, "bob").problem(409, "EXPIRED")
    transfer(shop.front, "bob", ended, "cat").problem(404, "COUPON_NOT_FOUND")
    for odd in ("1", "0", "007", "x", "9223372036854775808", "%D9%A3"):
        transfer(shop.front, "ann", odd, "bob").problem(404, "COUPON_NOT_FOUND")
    assert [] == shop.front.wallet("bob").ok()["items"]


@pytest.mark.parametrize(
    "to_user", ["ann", "", " ", "a b", "u" * 65, "a\u0007", None, True, 1.5, [], {}, "\u200b", 2**53]
)
def test_a_receiver_there_cannot_be_is_refused(shop: Shop, to_user: Any) -> None:
    """Oneself among them; by its field, and nothing has moved."""
    coupon_no = given(shop, "ann")

    assert ["to_user_id"] == transfer(shop.front, "ann", coupon_no, to_user).bad_fields()
    assert "unused" == shop.front.coupon("ann", coupon_no).ok()["status"]


def test_a_body_that_cannot_be_meant_is_refused(shop: Shop) -> None:
    """No receiver, one more field, no object, no JSON."""
    path = f"/v1/users/ann/coupons/{given(shop, 'ann')}/transfer"

    assert ["to_user_id"] == shop.front.ask("POST", path, {}).bad_fields()
    assert ["colour"] == shop.front.ask("POST", path, {"to_user_id": "bob", "colour": "red"}).bad_fields()
    assert [""] == shop.front.ask("POST", path, ["bob"]).bad_fields()
    shop.front.ask("POST", path, b"{").problem(400, "MALFORMED_JSON")
    assert ["to_user_id"] == shop.front.ask("POST", path).bad_fields()
    assert ["user_id"] == transfer(shop.front, "a%20b", 1, "bob").bad_fields()
    shop.front.ask("GET", path).problem(405, "METHOD_NOT_ALLOWED")


def test_a_number_is_read_as_its_decimal_text(shop: Shop) -> None:
    """As in claims (API.md, Conventions); and users' ids may hold slashes."""
    coupon_no = given(shop, "ann/1")

    received = transfer(shop.front, "ann%2F1", coupon_no, 1001).ok(201)

    assert "1001" == received["user_id"]
    assert [received] == shop.front.wallet("1001").ok()["items"]


def test_transfers_are_for_storefronts(shop: Shop) -> None:
    """Nobody else."""
    coupon_no = given(shop, "ann")

    transfer(shop.caller(), "ann", coupon_no, "bob").problem(401, "UNAUTHENTICATED")
    transfer(shop.caller("admin", "orders", "ops"), "ann", coupon_no, "bob").problem(403, "FORBIDDEN")


def test_of_several_receivers_at_once_one_gets_it(shop: Shop) -> None:
    """One 201, the others 409, whoever is first."""
    coupon_no = given(shop, "ann")

    replies = at_once(*(partial(transfer, shop.front, "ann", coupon_no, f"u{number}") for number in range(5)))

    assert [201, 409, 409, 409, 409] == sorted(reply.status for reply in replies)
    shop.assert_sound()


def test_a_received_coupon_takes_nothing_of_ones_allowance(shop: Shop) -> None:
    """Bob, who was given one, claims his own; ann, who gave hers away, cannot."""
    template_id = shop.desk.open(transferable=True, per_user_limit=1)
    coupon_no = shop.front.claimed(template_id, "ann")
    shop.settle(template_id)

    transfer(shop.front, "ann", coupon_no, "bob").ok(201)

    shop.front.claim(template_id, "bob").ok(202)
    shop.front.claim(template_id, "ann", "r2").problem(409, "LIMIT_REACHED")
    shop.settle(template_id)
    assert 2 == shop.desk.stock(template_id)["issued"]
    assert 2 == len(shop.front.wallet("bob").ok()["items"])
    shop.assert_sound()
