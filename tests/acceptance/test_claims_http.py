"""A claim's way over HTTP: accepted, told again, and how it stands, from the first answer to the last."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from coupon_workers.claiming.preheat import preheat_template
from tests.support.http_caller import claim_of
from tests.support.http_shop import Shop
from tests.support.template import insert_template

BIG = 636507967185264641
"""An identity that no double holds."""


def test_a_claim_is_accepted_and_then_issued(shop: Shop) -> None:
    """202 with the claim's number, which the coupon has too."""
    template_id = shop.desk.open()

    answer = shop.front.claim(template_id, "u-1001", "order-form-8f1c", channel="app", device_id="d1", ip="203.0.113.7")
    queued = shop.front.read_claim(answer.json["claim_id"]).ok()
    shop.settle(template_id)
    issued = shop.front.read_claim(answer.json["claim_id"]).ok()

    claim_id = answer.ok(202)["claim_id"]
    said = {"claim_id": claim_id, "status": "queued", "template_id": template_id, "user_id": "u-1001"}
    assert said | {"replayed": False} == answer.json
    assert ("queued", None, None, None) == tuple(
        queued[name] for name in ("status", "coupon_no", "reason", "settled_at")
    )
    assert ("issued", claim_id, None) == tuple(issued[name] for name in ("status", "coupon_no", "reason"))
    assert [(template_id, None), (template_id, "u-1001")] == [
        (told["template_id"], told["user_id"]) for told in (queued, issued)
    ]
    assert queued["queued_at"] == issued["queued_at"]
    assert datetime.fromisoformat(issued["queued_at"]) < datetime.fromisoformat(issued["settled_at"])
    assert issued["settled_at"].endswith("Z")
    shop.assert_sound()


def test_the_same_request_is_answered_with_its_claim_as_it_stands(shop: Shop) -> None:
    """200 with the same number: queued at first, then issued, whatever else the body says; one unit is taken."""
    template_id = shop.desk.open()
    claim_id = shop.front.claimed(template_id, "ann")

    while_queued = shop.front.claim(template_id, "ann", channel="other").ok(200)
    shop.settle(template_id)
    when_issued = shop.front.claim(template_id, "ann").ok(200)

    assert [(claim_id, "queued", True), (claim_id, "issued", True)] == [
        (answer["claim_id"], answer["status"], answer["replayed"]) for answer in (while_queued, when_issued)
    ]
    assert (1, 9) == tuple(shop.desk.stock(template_id)[name] for name in ("issued", "remaining"))


def test_a_rejected_claim_says_why_for_good(shop: Shop) -> None:
    """Paused while it was queued: its status, and the same request again, tell the reason; the unit is back."""
    template_id = shop.desk.open(per_user_limit=1)
    claim_id = shop.front.claimed(template_id, "ann")
    shop.desk.act(template_id, "pause").ok()
    shop.settle(template_id)

    told = shop.front.read_claim(claim_id).ok()
    again = shop.front.claim(template_id, "ann").ok(200)
    stock = shop.desk.stock(template_id)
    shop.desk.act(template_id, "resume").ok()
    shop.front.claimed(template_id, "ann", "r2")

    assert ("rejected", None, "PAUSED") == tuple(told[name] for name in ("status", "coupon_no", "reason"))
    assert (claim_id, "rejected", "PAUSED", True) == tuple(
        again[name] for name in ("claim_id", "status", "reason", "replayed")
    )
    assert (0, 0, 10) == tuple(stock[name] for name in ("issued", "queued", "remaining"))


def test_a_request_belongs_to_its_user_and_template(shop: Shop) -> None:
    """The same words by another user, or of another template, are another request."""
    one, other = shop.desk.open(), shop.desk.open()

    claims = [shop.front.claimed(*asked) for asked in ((one, "ann"), (one, "bob"), (other, "ann"))]
    again = [shop.front.claim(*asked).ok(200)["claim_id"] for asked in ((one, "ann"), (one, "bob"), (other, "ann"))]

    assert 3 == len(set(claims))
    assert claims == again
    assert (8, 9) == (shop.desk.stock(one)["remaining"], shop.desk.stock(other)["remaining"])


def test_a_users_words_do_not_run_together(shop: Shop) -> None:
    """Neither a user nor a request can be spelt so that it is taken for another's."""
    template_id = shop.desk.open()

    asked = [("ann", "b c"), ("ann", "b  c"), ("annb", "c"), ("ann", "b"), ("a", "nn b c"), ("ann", "B C")]
    claims = {shop.front.claimed(template_id, user, request) for user, request in asked}

    assert len(asked) == len(claims)


def test_a_user_is_any_visible_text_or_an_integer(shop: Shop) -> None:
    """An integer is read as its decimal text; the wallet knows the user by the same name."""
    template_id = shop.desk.open(total_quantity=100)
    names = {1001: "1001", 0: "0", -5: "-5", 2**53 - 1: "9007199254740991"}
    texts = ("007", str(BIG), "用户-1", "a/b?c#d%2F&e=f+g", "//a/coupons/1/", "\\\"'{}", "😀" * 64)

    for sent, read in (names | dict.fromkeys(texts)).items():
        read = read or str(sent)
        answer = shop.front.claim(template_id, sent).ok(202)
        shop.settle(template_id)

        assert read == answer["user_id"]
        assert answer["claim_id"] == shop.front.claim(template_id, read).ok(200)["claim_id"]
        coupons = shop.front.wallet(read).ok()["items"]
        assert [(answer["claim_id"], read)] == [(coupon["coupon_no"], coupon["user_id"]) for coupon in coupons]
        assert read == shop.front.coupon(read, answer["claim_id"]).ok()["user_id"]


def test_a_request_is_any_printable_text(shop: Shop) -> None:
    """Up to 128 characters, spaces among them, and it is known again."""
    template_id = shop.desk.open()
    requests = ("x", "x" * 128, "order form 8f1c", " ", "申请-1", "😀" * 128, '{"a":1}', 'a\\b"c')

    claims = [shop.front.claimed(template_id, "ann", request) for request in requests]
    shop.settle(template_id)

    assert claims == [shop.front.claim(template_id, "ann", request).ok(200)["claim_id"] for request in requests]
    assert len(requests) == len(set(claims))
    shop.assert_sound()


def test_identities_survive_json_in_and_out(shop: Shop) -> None:
    """Of 64 bits, as text; as numbers only below 2**53, where every reader keeps them exact."""
    insert_template(shop.services.engine, template_id=BIG)
    small = insert_template(shop.services.engine, template_id=2**53 - 1)
    for template_id in (BIG, small):
        preheat_template(shop.services, template_id)

    as_text = shop.front.claim(str(BIG), str(BIG)).ok(202)
    as_number = shop.front.claim(small, "ann").ok(202)
    refused = shop.front.claim(BIG, 2**53)
    shop.settle(str(BIG))
    coupon = shop.front.wallet(str(BIG)).ok()["items"][0]

    assert (str(BIG), str(BIG)) == (as_text["template_id"], as_text["user_id"])
    assert str(small) == as_number["template_id"]
    assert ["template_id", "user_id"] == refused.bad_fields()
    assert (as_text["claim_id"], str(BIG), str(BIG)) == tuple(
        coupon[name] for name in ("coupon_no", "template_id", "user_id")
    )
    assert int(as_text["claim_id"]) > 2**53


def test_a_wait_ends_when_the_claim_does(shop: Shop) -> None:
    """Long before its time is over: settling is what it waits for."""
    template_id = shop.desk.open()
    claim_id = shop.front.claimed(template_id, "ann")

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(shop.front.read_claim, claim_id, 10)
        began_s = time.monotonic()
        shop.settle(template_id)
        told = waiting.result().ok()

    assert "issued" == told["status"]
    assert time.monotonic() - began_s < 5


def test_a_wait_that_is_over_tells_how_the_claim_stands(shop: Shop) -> None:
    """Still queued; fractions of a second may be asked for."""
    claim_id = shop.front.claimed(shop.desk.open(), "ann")

    assert "queued" == shop.front.read_claim(claim_id, 0.1).ok()["status"]


def test_a_claim_is_read_with_the_scope_that_makes_it(shop: Shop) -> None:
    """Nobody else learns of it."""
    claim_id = shop.front.claimed(shop.desk.open(), "ann")

    shop.caller().read_claim(claim_id).problem(401, "UNAUTHENTICATED")
    shop.caller("admin", "orders", "ops").read_claim(claim_id).problem(403, "FORBIDDEN")


def test_the_order_and_the_spelling_of_members_do_not_matter(shop: Shop) -> None:
    """Escapes, spaces, a parameter of the content type: JSON is JSON."""
    template_id = shop.desk.open()
    body = json.dumps(claim_of(template_id, "ünï"), indent=4).encode()
    turned = json.dumps(dict(reversed(claim_of(template_id, "ünï").items())), ensure_ascii=False).encode()

    first = shop.front.ask("POST", "/v1/claims", body, Content_Type="application/json; charset=utf-8").ok(202)
    second = shop.front.ask("POST", "/v1/claims", turned, Content_Type="Application/JSON").ok(200)

    assert first["claim_id"] == second["claim_id"]
