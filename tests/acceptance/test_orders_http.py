"""Orders over HTTP (API.md, Orders), as an order centre asks."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tests.support.gift import at_once
from tests.support.http_desk import from_now
from tests.support.http_reply import Reply
from tests.support.http_shop import Shop
from tests.support.http_wire import Wires
from tests.support.order_books import nothing_written
from tests.support.order_http import OrderCentre


@pytest.fixture
def centre(shop: Shop) -> OrderCentre:
    """The order centre of a shop."""
    return OrderCentre(shop)


@pytest.fixture
def far_centre(far_shop: Shop) -> OrderCentre:
    """The order centre of a shop behind wires."""
    return OrderCentre(far_shop)


def test_an_order_from_its_quote_to_its_return(centre: OrderCentre) -> None:
    """Each answer as the contract has it, and the coupon in the wallet beside it."""
    coupon = centre.coupon()

    quote = centre.quote().ok()
    lock = centre.lock("o1", [coupon]).ok()
    wallet = centre.shop.front.coupon("ann", coupon).ok()
    paid = centre.redeem("o1").ok()
    part = centre.refund("o1", "ref-1", lines=[{"line_id": "2", "quantity": 1}]).ok()
    rest = centre.refund("o1", "ref-2").ok()
    whole = centre.read("o1").ok()

    assert [coupon] == [applied["coupon_no"] for applied in quote["applied"]]
    assert quote["applied"] == lock["applied"] == paid["applied"]
    assert (2_000, 13_000, "locked") == (lock["discount"], lock["payable"], lock["status"])
    assert ("locked", "o1", lock["locked_until"]) == tuple(
        wallet[name] for name in ("status", "order_no", "locked_until")
    )
    assert (4_333, 667, 8_667, 1_333) == (
        part["refund_amount"],
        part["discount_reversed"],
        rest["refund_amount"],
        rest["discount_reversed"],
    )
    assert [{"coupon_no": coupon, "status": "unused", "discount_reversed": 1_333}] == rest["coupons"]
    assert ("redeemed", 13_000, [part, rest]) == (whole["status"], whole["refunded"], whole["refunds"])
    assert "unused" == centre.shop.front.coupon("ann", coupon).ok()["status"]
    centre.shop.assert_sound()


def test_of_five_orders_at_once_one_locks_the_coupon(centre: OrderCentre) -> None:
    """One 200 and four 409 with the order that holds it; no loser is known, or has a discount (CASES 1)."""
    coupon = centre.coupon()

    replies = at_once(*(partial(centre.lock, f"o{number}", [coupon]) for number in range(5)))

    assert [200, 409, 409, 409, 409] == sorted(reply.status for reply in replies)
    [winner] = [number for number, reply in enumerate(replies) if reply.status == 200]
    for number, reply in enumerate(replies):
        if number != winner:
            problem = reply.problem(409, "LOCKED_BY_ORDER")
            assert (f"o{winner}", coupon) == (problem["order_no"], problem["coupon_no"])
            centre.read(f"o{number}").problem(404, "ORDER_NOT_FOUND")
    assert 2_000 == centre.read(f"o{winner}").ok()["discount"]
    centre.shop.assert_sound()


def test_paid_three_times_at_once_is_one_redemption(centre: OrderCentre) -> None:
    """Three times the same answer (CASES 16)."""
    centre.lock("o1", [centre.coupon()]).ok()

    replies = at_once(*[partial(centre.redeem, "o1")] * 3)
    events = at_once(*[partial(centre.tell, "e1", "o1", "paid", from_now(), payment_no="pay-1")] * 3)

    assert [replies[0].ok()] * 3 == [reply.ok() for reply in replies]
    assert [events[0].ok()] * 3 == [event.ok() for event in events]
    assert ["issue", "lock", "redeem"] == [
        step["action"]
        for step in centre.shop.front.coupon("ann", replies[0].ok()["applied"][0]["coupon_no"]).ok()["history"]
    ]
    centre.shop.assert_sound()


def test_refunds_at_once(centre: OrderCentre) -> None:
    """One number: one return and one answer. Two numbers: the second finds nothing left (CASES 6)."""
    for order, refunds in (("o1", ("r1", "r1")), ("o2", ("r2", "r3"))):
        centre.lock(order, [centre.coupon(order)]).ok()
        centre.redeem(order).ok()

        replies = at_once(*(partial(centre.refund, order, refund) for refund in refunds))

        if order == "o1":
            assert replies[0].ok() == replies[1].ok()
        else:
            assert [200, 409] == sorted(reply.status for reply in replies)
            next(reply for reply in replies if reply.status == 409).problem(409, "NOTHING_LEFT")
        assert 1 == len(centre.read(order).ok()["refunds"])
    centre.shop.assert_sound()


def test_a_second_order_of_the_buyer_is_told_which_one_holds_the_coupon(centre: OrderCentre) -> None:
    """And his first one goes in again, with the deadline it had (CASES 11)."""
    coupon = centre.coupon()
    lock = centre.lock("o1", [coupon]).ok()

    assert "o1" == centre.lock("o2", [coupon]).problem(409, "LOCKED_BY_ORDER")["order_no"]
    assert lock == centre.lock("o1", [coupon]).ok()
    otherwise = centre.lock("o1", [coupon], channel="h5").problem(409, "LOCKED_OTHERWISE")
    assert lock["locked_until"] == otherwise["locked_until"]


def test_what_an_orders_state_does_not_allow_is_a_409(centre: OrderCentre) -> None:
    """With the evidence that the order centre needs."""
    coupon = centre.coupon()
    centre.lock("o1", [coupon]).ok()
    assert "locked" == centre.refund("o1", "ref-1").problem(409, "NOT_REDEEMED")["order_status"]
    first = centre.release("o1").ok()
    assert first == centre.release("o1", "time-out").ok()
    centre.lock("o2", [coupon]).ok()
    assert ("locked", "o2") == tuple(
        centre.redeem("o1").problem(409, "LOCK_EXPIRED")[name] for name in ("coupon_status", "order_no")
    )
    centre.redeem("o2").ok()

    for reply in (centre.redeem("o2", "pay-2"), centre.release("o2"), centre.lock("o2", [coupon])):
        assert "pay-1" == reply.problem(409, "ALREADY_REDEEMED")["payment_no"]
    assert "redeemed" == centre.lock("o3", [coupon]).problem(409, "COUPON_NOT_AVAILABLE")["coupon_status"]
    centre.redeem("o2", **centre.order([coupon], lines=[{**centre.order()["lines"][0], "unit_price": 1}])).problem(
        409, "ORDER_DIFFERS"
    )


def test_a_lock_that_does_not_apply_says_why(centre: OrderCentre) -> None:
    """The shortfall among it; amounts of another currency are another thing (CASES 24)."""
    coupon = centre.coupon(threshold=15_750)
    yen = centre.coupon(currency="JPY", amount=275, threshold=0, type="cash")

    problem = centre.lock("o1", [coupon]).problem(409, "THRESHOLD_NOT_MET")
    assert (750, coupon) == (problem["shortfall"], problem["coupon_no"])
    assert ["THRESHOLD_NOT_MET", "CURRENCY_MISMATCH"] == [
        each["code"] for each in centre.lock("o1", [coupon, yen]).any_problem()["rejected"]
    ]
    centre.lock("o1", [yen]).problem(409, "CURRENCY_MISMATCH")
    lines = [{"line_id": "1", "product_id": "p1", "unit_price": 1_000, "quantity": 1}]
    assert 725 == centre.lock("o1", [yen], currency="JPY", lines=lines).ok()["payable"]


def test_an_unknown_coupon_and_a_foreign_one_are_the_same_404(centre: OrderCentre) -> None:
    """Byte for byte, but for the number that was asked for."""
    foreign = centre.coupon(user="bob")
    unknown = str(int(foreign) + 1)
    calls = (
        lambda coupon: centre.lock("o1", [coupon]),
        lambda coupon: centre.quote([coupon]),
        lambda coupon: centre.redeem("o1", **centre.order([coupon])),
    )

    with nothing_written(centre.shop.services):
        for call in calls:
            replies = [call(foreign), call(unknown)]
            for reply in replies:
                reply.problem(404, "COUPON_NOT_FOUND")
            bodies = {re.sub(rb"\d{10,}", b"N", reply.body) for reply in replies}
            headers = {tuple(sorted({**reply.headers, "x-request-id": ""}.items())) for reply in replies}
            assert (1, 1) == (len(bodies), len(headers))


def test_an_order_is_its_users(centre: OrderCentre) -> None:
    """Another user's order of the same number is another order; an unknown one is the same 404."""
    centre.lock("o1", [centre.coupon()]).ok()
    bob = OrderCentre(centre.shop, "bob")

    replies: list[Reply] = [bob.read("o1"), bob.read("o2"), bob.redeem("o1"), bob.release("o1"), bob.refund("o1", "r1")]

    assert 1 == len({reply.body for reply in replies})
    replies[0].problem(404, "ORDER_NOT_FOUND")
    bob.lock("o1", [bob.coupon()]).ok()
    assert ("ann", "bob") == (centre.read("o1").ok()["user_id"], bob.read("o1").ok()["user_id"])


def test_an_idempotency_key_answers_a_lock_again(centre: OrderCentre) -> None:
    """The header works beside the order's own number; a refusal of the day's work is kept with it."""
    coupon = centre.coupon()
    first = centre.ask("o1", "lock", centre.order([coupon]), Idempotency_Key="k1")
    centre.release("o1").ok()

    again = centre.ask("o1", "lock", centre.order([coupon]), Idempotency_Key="k1")

    assert (first.ok(), "true") == (again.ok(), again.headers["idempotency-replayed"])
    assert "released" == centre.read("o1").ok()["status"]
    centre.ask("o2", "lock", centre.order([coupon]), Idempotency_Key="k1").problem(422, "IDEMPOTENCY_MISMATCH")


def test_events_are_answered_with_what_became_of_them(centre: OrderCentre) -> None:
    """Waiting, applied, superseded, refused: each a 200."""
    occurred_at = from_now()
    waiting = centre.tell("e1", "o1", "refunded", occurred_at, full=True).ok()
    centre.lock("o1", [centre.coupon()]).ok()
    paid = centre.tell("e2", "o1", "paid", from_now(minutes=-1)).ok()

    assert {
        "event_id": "e1",
        "order_no": "o1",
        "type": "refunded",
        "state": "waiting",
        "code": "ORDER_NOT_FOUND",
        "detail": None,
    } == waiting
    assert ("applied", None) == (paid["state"], paid["code"])
    assert "applied" == centre.tell("e1", "o1", "refunded", occurred_at, full=True).ok()["state"]
    assert ("superseded", "PAID") == tuple(
        centre.tell("e3", "o1", "closed", from_now(minutes=-2)).ok()[name] for name in ("state", "code")
    )
    refused = centre.tell("e4", "o1", "paid", from_now(), payment_no="other").ok()
    assert ("refused", "ALREADY_REDEEMED") == (refused["state"], refused["code"])


def test_orders_are_for_order_centres(centre: OrderCentre) -> None:
    """Nobody else: neither a storefront nor an operator."""
    shop, body = centre.shop, centre.order(["1"])

    for method, path in (
        ("POST", "/v1/quotes"),
        ("POST", "/v1/orders/o1/lock"),
        ("POST", "/v1/orders/o1/redeem"),
        ("POST", "/v1/orders/o1/release"),
        ("POST", "/v1/orders/o1/refunds"),
        ("POST", "/v1/order-events"),
        ("GET", "/v1/orders/o1?user_id=ann"),
    ):
        asked = None if method == "GET" else body
        shop.caller().ask(method, path, asked).problem(401, "UNAUTHENTICATED")
        shop.caller("admin", "storefront", "ops").ask(method, path, asked).problem(403, "FORBIDDEN")


def test_without_redis_orders_go_on(far_centre: OrderCentre, wires: Wires) -> None:
    """They need PostgreSQL alone: from the quote to the return."""
    coupon = far_centre.coupon()

    wires.redis.cut()
    assert 2_000 == far_centre.quote().ok()["discount"]
    far_centre.lock("o1", [coupon]).ok()
    far_centre.redeem("o1").ok()
    far_centre.refund("o1", "ref-1").ok()
    far_centre.lock("o2", [coupon]).ok()
    far_centre.release("o2").ok()
    far_centre.tell("e1", "o2", "closed", from_now()).ok()
    assert "redeemed" == far_centre.read("o1").ok()["status"]
    wires.redis.mend()


def test_without_postgresql_orders_are_told_to_ask_again(far_centre: OrderCentre, wires: Wires) -> None:
    """A 503 each, never a 500; the same calls succeed when it is back, once."""
    coupon = far_centre.coupon()
    far_centre.lock("o1", [coupon]).ok()
    calls = (
        lambda: far_centre.lock("o1", [coupon]),
        lambda: far_centre.redeem("o1"),
        lambda: far_centre.refund("o1", "ref-1"),
        lambda: far_centre.tell("e1", "o1", "paid", "2026-11-11T00:00:00Z", payment_no="pay-1"),
        lambda: far_centre.quote([coupon]),
        lambda: far_centre.read("o1"),
    )

    wires.database.cut()
    for call in calls:
        problem = call().problem(503, "STORE_UNAVAILABLE")
        assert problem["detail"].startswith("PostgreSQL")
    wires.database.mend()

    for call in calls:
        call().ok()
    assert 1 == len(far_centre.read("o1").ok()["refunds"])
    far_centre.shop.assert_sound()
