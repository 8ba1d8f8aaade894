"""What an order centre cannot mean (API.md, Orders): a precise 4xx that names the field, and nothing has happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from tests.support.order_books import nothing_written
from tests.support.order_http import OrderCentre
from tests.support.order_shop import Json, line

COUPON = "4711"
"""There is no such coupon: a body that is well formed meets a 404."""

EXACT = 2**53
PAID_FIELDS = {"user_id": "ann", "payment_no": "pay-1"}
EVENT = {"event_id": "e1", "order_no": "o1", "user_id": "ann", "type": "paid", "occurred_at": "2026-11-11T00:00:00Z"}


@pytest.fixture(scope="module")
def centre(lasting_shop: Shop) -> OrderCentre:
    """An order centre with one paid order, ``paid``, of two lines, and one locked, ``held``."""
    centre = OrderCentre(lasting_shop)
    centre.lock("paid", [centre.coupon()]).ok()
    centre.redeem("paid").ok()
    centre.refund("paid", "ref-0", lines=[{"line_id": "1", "quantity": 1}]).ok()
    centre.lock("held", [centre.coupon("r2")]).ok()
    return centre


@pytest.fixture(autouse=True)
def nothing_happens(centre: OrderCentre) -> Iterator[None]:
    """Whatever a test of this file asks, the books stay as they are."""
    with nothing_written(centre.shop.services):
        yield


LINES: dict[str, tuple[list[Any], list[str]]] = {
    "no lines": ([], ["lines"]),
    "1,001 lines": ([line(str(number), 1) for number in range(1_001)], ["lines"]),
    "a negative price": ([line("1", -1)], ["lines.0.unit_price"]),
    "a fractional price": ([line("1", 1.5)], ["lines.0.unit_price"]),  # type: ignore[arg-type]
    "a price of 1.0": ([line("1", 1.0)], ["lines.0.unit_price"]),  # type: ignore[arg-type]
    "a price as text": ([line("1", "10")], ["lines.0.unit_price"]),  # type: ignore[arg-type]
    "a price of 2^53": ([line("1", EXACT)], ["lines.0.unit_price"]),
    "a line above 2^53": ([line("1", EXACT // 2, 2)], ["lines", "lines.0.unit_price"]),
    "a sum above 2^53": ([line("1", EXACT - 1), line("2", 1)], ["lines"]),
    "no pieces": ([line("1", 1, 0)], ["lines.0.quantity"]),
    "a negative quantity": ([line("1", 1, -3)], ["lines.0.quantity"]),
    "half a piece": ([line("1", 1, 0.5)], ["lines.0.quantity"]),  # type: ignore[arg-type]
    "a line twice": ([line("1", 1), line("2", 1), line("1", 1)], ["lines.2.line_id"]),
    "a line twice, as a number": ([line("1", 1), line("1", 1) | {"line_id": 1}], ["lines.1.line_id"]),
    "an unknown field of a line": ([line("1", 1, colour="red")], ["lines.0.colour"]),
    "a line that is none": (["1"], ["lines.0"]),
    "a control character": ([line("1", 1, product_id="a\u0007")], ["lines.0.product_id"]),
}

ORDER: dict[str, tuple[Json, list[str]]] = {
    "a currency in small letters": ({"currency": "cny"}, ["currency"]),
    "an unknown currency": ({"currency": "XXX"}, ["currency"]),
    "no currency": ({"currency": None}, ["currency"]),
    "an unknown field": ({"total": 3}, ["total"]),
    "a user with a space": ({"user_id": "a b"}, ["user_id"]),
    "a long user": ({"user_id": "u" * 65}, ["user_id"]),
    "a channel with a comma": ({"channel": "a,b"}, ["channel"]),
    "tags that are no list": ({"user_tags": "vip"}, ["user_tags"]),
    "a coupon twice": ({"coupon_nos": [COUPON, "4712", COUPON]}, ["coupon_nos"]),
    "a coupon twice, as a number": ({"coupon_nos": [COUPON, 4711]}, ["coupon_nos"]),
    "no coupons": ({"coupon_nos": []}, ["coupon_nos"]),
    "51 coupons": ({"coupon_nos": [str(number) for number in range(1, 52)]}, ["coupon_nos"]),
    "a coupon that is no number": ({"coupon_nos": ["x"]}, ["coupon_nos.0"]),
    "a coupon with a zero before it": ({"coupon_nos": ["04711"]}, ["coupon_nos.0"]),
    "a coupon of no digits of ours": ({"coupon_nos": ["\u0664\u0667"]}, ["coupon_nos.0"]),
    "an empty coupon": ({"coupon_nos": [""]}, ["coupon_nos.0"]),
    "a coupon of 2^63": ({"coupon_nos": [str(2**63)]}, ["coupon_nos.0"]),
    "a coupon of 2^53 as a number": ({"coupon_nos": [EXACT]}, ["coupon_nos.0"]),
    "a fractional coupon": ({"coupon_nos": [1.0]}, ["coupon_nos.0"]),
} | {name: ({"lines": lines}, fields) for name, (lines, fields) in LINES.items()}


@pytest.mark.parametrize("name", ORDER)
def test_an_order_that_cannot_be_meant_is_refused_by_its_fields(centre: OrderCentre, name: str) -> None:
    """The same in a quote, in a lock, and in a redemption without one."""
    change, fields = ORDER[name]
    body = centre.order([COUPON]) | change

    assert fields == centre.caller.ask("POST", "/v1/quotes", body).bad_fields()
    assert fields == centre.ask("o1", "lock", body).bad_fields()
    assert fields == centre.ask("o1", "redeem", body | {"payment_no": "pay-1"}).bad_fields()


@pytest.mark.parametrize("ttl_seconds", [59, 86_401, 0, -60, 60.0, "900", None, True, EXACT])
def test_a_lock_stands_a_minute_at_least_and_a_day_at_most(centre: OrderCentre, ttl_seconds: Any) -> None:
    """In whole seconds."""
    assert ["ttl_seconds"] == centre.lock("o1", [COUPON], ttl_seconds=ttl_seconds).bad_fields()
    for good in (60, 86_400):
        centre.lock("o1", [COUPON], ttl_seconds=good).problem(404, "COUPON_NOT_FOUND")


def test_the_largest_order_is_read(centre: OrderCentre) -> None:
    """A thousand lines, fifty coupons, the last exact integer; it is the coupon that does not exist."""
    coupons = [str(number) for number in range(1, 51)]
    lines = [line(str(number), 0) for number in range(999)] + [line("last", EXACT - 1)]

    centre.lock("o1", coupons, lines=lines).problem(404, "COUPON_NOT_FOUND")
    centre.quote(coupons, lines=lines).problem(404, "COUPON_NOT_FOUND")
    assert EXACT - 1 == centre.quote(lines=lines).ok()["payable"]


PAYMENTS: dict[str, tuple[Json, list[str]]] = {
    "no payment": ({"payment_no": None}, ["payment_no"]),
    "an empty payment": ({"payment_no": ""}, ["payment_no"]),
    "a long payment": ({"payment_no": "p" * 65}, ["payment_no"]),
    "a naive time": ({"paid_at": "2026-11-11T00:00:00"}, ["paid_at"]),
    "a time as a number": ({"paid_at": 1_762_000_000}, ["paid_at"]),
    "a time that is none": ({"paid_at": "2026-02-30T00:00:00Z"}, ["paid_at"]),
    "an unknown field": ({"paid": True}, ["paid"]),
    "half an order": ({"lines": [line("1", 1)]}, ["coupon_nos", "currency"]),
    "coupons without an order": ({"coupon_nos": [COUPON]}, ["currency", "lines"]),
}


@pytest.mark.parametrize("name", PAYMENTS)
def test_a_payment_that_cannot_be_meant_is_refused_by_its_fields(centre: OrderCentre, name: str) -> None:
    """Of an order that waits for it."""
    change, fields = PAYMENTS[name]

    assert fields == centre.ask("held", "redeem", PAID_FIELDS | change).bad_fields()


def test_a_payment_of_the_future_is_refused(centre: OrderCentre) -> None:
    """By its field."""
    assert ["paid_at"] == centre.redeem("held", paid_at=from_now(minutes=6)).bad_fields()


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"reason": None}, ["reason"]),
        ({"reason": ""}, ["reason"]),
        ({"reason": "r" * 65}, ["reason"]),
        ({"reason": "a\nb"}, ["reason"]),
        ({"user_id": ""}, ["user_id"]),
        ({"force": True}, ["force"]),
    ],
)
def test_a_release_that_cannot_be_meant_is_refused_by_its_fields(
    centre: OrderCentre, change: Json, fields: list[str]
) -> None:
    """A reason is a short text."""
    assert fields == centre.ask("held", "release", {"user_id": "ann", "reason": "buyer"} | change).bad_fields()


def of_line(line_id: Any = "2", quantity: Any = 1, **more: Any) -> Json:
    """Pieces of a line of the paid order, of which one piece of line 2 is left."""
    return {"lines": [{"line_id": line_id, "quantity": quantity} | more]}


REFUNDS: dict[str, tuple[Json, list[str]]] = {
    "neither lines nor all": ({}, ["lines"]),
    "both": (of_line() | {"full": True}, ["lines"]),
    "not all": ({"full": False}, ["full"]),
    "all, as a number": ({"full": 1}, ["full"]),
    "no lines": ({"lines": []}, ["lines"]),
    "nothing of a line": (of_line(quantity=0), ["lines.0.quantity"]),
    "less than nothing": (of_line(quantity=-1), ["lines.0.quantity"]),
    "half a piece": (of_line(quantity=0.5), ["lines.0.quantity"]),
    "one piece, as 1.0": (of_line(quantity=1.0), ["lines.0.quantity"]),
    "more than is left": (of_line(quantity=2), ["lines.0.quantity"]),
    "what has gone back": (of_line("1"), ["lines.0.quantity"]),
    "an unknown line": (of_line("9"), ["lines.0.line_id"]),
    "a line twice": ({"lines": of_line()["lines"] * 2}, ["lines.1.line_id"]),
    "an unknown field": (of_line(amount=3), ["lines.0.amount"]),
    "an amount": ({"full": True, "amount": 100}, ["amount"]),
    "no number": ({"full": True, "refund_no": None}, ["refund_no"]),
    "another refund's number": ({"full": True, "refund_no": "ref-0"}, ["refund_no"]),
    "1,001 lines": ({"lines": [of_line(str(n))["lines"][0] for n in range(1_001)]}, ["lines"]),
}


@pytest.mark.parametrize("name", REFUNDS)
def test_a_refund_that_cannot_be_meant_is_refused_by_its_fields(centre: OrderCentre, name: str) -> None:
    """Of an order that is paid and partly returned."""
    what, fields = REFUNDS[name]

    assert fields == centre.ask("paid", "refunds", {"user_id": "ann", "refund_no": "ref-1"} | what).bad_fields()


EVENTS: dict[str, tuple[Json, list[str]]] = {
    "an unknown type": ({"type": "shipped"}, ["type"]),
    "no type": ({"type": None}, ["type"]),
    "a naive time": ({"occurred_at": "2026-11-11T00:00:00"}, ["occurred_at"]),
    "a payment of a close": ({"type": "closed", "payment_no": "p"}, ["payment_no"]),
    "a reason of a payment": ({"reason": "r"}, ["reason"]),
    "a refund of a payment": ({"refund_no": "r", "full": True}, ["full", "refund_no"]),
    "lines of a close": ({"type": "closed"} | of_line(), ["lines"]),
    "a refund of nothing": ({"type": "refunded"}, ["lines"]),
    "a refund of both": ({"type": "refunded", "full": True} | of_line(), ["lines"]),
    "a payment of a refund": ({"type": "refunded", "full": True, "payment_no": "p"}, ["payment_no"]),
    "a long event id": ({"event_id": "e" * 65}, ["event_id"]),
    "a control character": ({"order_no": "o\u0000"}, ["order_no"]),
    "another control character": ({"order_no": "o\u0001"}, ["order_no"]),
    "an unknown field": ({"amount": 1}, ["amount"]),
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_that_cannot_be_meant_is_refused_by_its_fields(centre: OrderCentre, name: str) -> None:
    """Nor is it kept."""
    change, fields = EVENTS[name]

    assert fields == centre.caller.ask("POST", "/v1/order-events", EVENT | change).bad_fields()


def test_an_event_of_the_future_is_refused(centre: OrderCentre) -> None:
    """By its field."""
    assert ["occurred_at"] == centre.tell("e1", "held", "paid", from_now(minutes=6)).bad_fields()


@pytest.mark.parametrize("action", ["lock", "redeem", "release", "refunds"])
@pytest.mark.parametrize("order", ["o" * 65, "o\x07", "o\n", " ", "\u2028", "\x7f"])
def test_an_order_number_that_cannot_be_is_refused(centre: OrderCentre, action: str, order: str) -> None:
    """Too long, control characters, nothing but spaces: by its field, whatever the body."""
    bodies = {
        "lock": centre.order([COUPON]),
        "redeem": PAID_FIELDS,
        "release": {"user_id": "ann", "reason": "buyer"},
        "refunds": {"user_id": "ann", "refund_no": "ref-1", "full": True},
    }

    assert ["order_no"] == centre.ask(order, action, bodies[action]).bad_fields()
    assert ["order_no"] == centre.read(order).bad_fields()


def test_an_order_number_with_a_slash_has_no_address(centre: OrderCentre) -> None:
    """Escaped or not, it arrives as two parts of a path; nor has one that is a NUL."""
    centre.release("\x00").problem(404, "NOT_FOUND")
    centre.lock("a/b", [COUPON]).problem(404, "NOT_FOUND")
    centre.read("a/b").problem(404, "NOT_FOUND")


@pytest.mark.parametrize("query", ["", "?user_id=", "?user_id=a%20b", "?user_id=ann&x=1", "?user_id=" + "u" * 65])
def test_an_order_is_read_for_one_user(centre: OrderCentre, query: str) -> None:
    """And for nothing else."""
    fields = centre.caller.ask("GET", f"/v1/orders/held{query}").bad_fields()

    assert (["x"] if "x=1" in query else ["user_id"]) == fields


@pytest.mark.parametrize("path", ["/v1/quotes", "/v1/orders/held/lock", "/v1/orders/paid/refunds", "/v1/order-events"])
def test_a_body_that_is_no_object_is_refused(centre: OrderCentre, path: str) -> None:
    """A list, no JSON, a name twice, NaN, a body of more than 1 MiB, no body."""
    ask = centre.caller.ask

    assert [""] == ask("POST", path, []).bad_fields()
    for malformed in (b"{", b'{"user_id": "a", "user_id": "b"}', b'{"user_id": NaN}', b"\xff"):
        ask("POST", path, malformed).problem(400, "MALFORMED_JSON")
    ask("POST", path, b" " * (1024 * 1024 + 1)).problem(413, "BODY_TOO_LARGE")
    assert "user_id" in ask("POST", path).bad_fields()
