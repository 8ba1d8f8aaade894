"""The order centre's feed (API.md, Orders): the instants at which things happened decide, not when they are heard."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from coupon_workers.orders.unlock_sweep import settle_met_events
from coupon_workers.runtime.services import Services
from tests.support.order_books import books, nothing_written, refused_without_a_trace
from tests.support.order_shop import START, Json, OrderShop
from tests.support.sale import assert_sound

KINDS = ("paid", "closed", "refunded")
FULL: Json = {"full": True}
PART: Json = {"lines": [{"line_id": "1", "quantity": 1}]}
MINUTE = timedelta(minutes=1)


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def end_of(occurred: dict[str, int], refund: Json) -> tuple[str, int]:
    """The model: where the coupon ends, and what it has cost. What is closed after its payment, or at the same
    instant, goes back whole; of another order goes back what was refunded."""
    if occurred["closed"] >= occurred["paid"] or refund == FULL:
        return "unused", 0
    return "redeemed", 2_000 - 1_333


def cost(shop: OrderShop, order: str) -> int:
    """What the order has cost by now."""
    [(sum_minor,)] = shop.rows(
        "SELECT coalesce(sum(CASE kind WHEN 'redeem' THEN amount_minor ELSE -amount_minor END), 0)"
        " FROM ledger_entry WHERE order_no = :order",
        order=order,
    )
    return int(sum_minor)


INSTANTS = [*permutations((1, 2, 3)), (1, 1, 2)]
"""When each of ``KINDS`` occurred: every order, and a closing at the very instant of the payment."""


@pytest.mark.parametrize("refund", [FULL, PART], ids=["all", "a part"])
@pytest.mark.parametrize("locked", ["before", "after"])
def test_the_end_depends_on_what_happened_when_not_on_what_is_heard_when(
    shop: OrderShop, refund: Json, locked: str
) -> None:
    """Each order of arrival of each order of events, with the lock before or after them (CASES 16)."""
    template, shop.clock.now = shop.template(), START + 4 * MINUTE
    place = 0 if locked == "before" else 3
    ends: dict[Any, tuple[str, int]] = {}

    for number, (instants, arrival) in enumerate((i, a) for i in INSTANTS for a in permutations(KINDS)):
        occurred = dict(zip(KINDS, instants, strict=True))
        order, coupon = f"o{number}", shop.issue(template)
        for heard in range(4):
            if heard == place:
                shop.lock(order, [coupon])
            if heard < 3:
                kind = arrival[heard]
                more = refund if kind == "refunded" else {}
                shop.tell(f"{order}-{kind}", order, kind, START + occurred[kind] * MINUTE, **more)
        ends[instants, arrival] = shop.status(coupon), cost(shop, order)

    assert {
        (instants, arrival): end_of(dict(zip(KINDS, instants, strict=True)), refund) for instants, arrival in ends
    } == ends
    assert_sound(shop.services)


def test_a_close_that_overtakes_its_payment_nets_to_zero(shop: OrderShop) -> None:
    """Paid, then closed; heard the other way round: the order is released, and the payment has come to nothing
    (CASES 16)."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=3)

    closed = shop.tell("e2", "o1", "closed", START + 2 * MINUTE)
    paid = shop.tell("e1", "o1", "paid", START + MINUTE, payment_no="pay-1")

    assert ("applied", None) == (closed["state"], closed["code"])
    assert ("superseded", "CLOSED") == (paid["state"], paid["code"])
    assert ("unused", []) == (shop.status(coupon), shop.ledger())


def test_a_payment_that_overtakes_an_earlier_close_stands(shop: OrderShop) -> None:
    """Closed, then paid all the same; heard the other way round."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=3)

    paid = shop.tell("e2", "o1", "paid", START + 2 * MINUTE, payment_no="pay-1")
    closed = shop.tell("e1", "o1", "closed", START + MINUTE)

    assert ("applied", "superseded", "PAID") == (paid["state"], closed["state"], closed["code"])
    assert ("redeemed", 2_000) == (shop.status(coupon), shop.expense())


def test_events_that_are_sent_again_are_answered_as_they_ended(shop: OrderShop) -> None:
    """Whatever has happened since; nothing is written."""
    coupon = shop.issue(shop.template())
    first = [shop.tell("e1", "o1", "paid", START), shop.tell("e2", "o1", "refunded", START, **PART)]
    shop.lock("o1", [coupon])
    shop.tell("e3", "o1", "closed", START)
    shop.clock.pass_by(days=100)

    with nothing_written(shop.services):
        again = [
            shop.tell("e1", "o1", "paid", START),
            shop.tell("e2", "o1", "refunded", START, **PART),
            shop.tell("e3", "o1", "closed", START),
        ]

    assert ["waiting", "waiting"] == [event["state"] for event in first]
    assert ["applied"] * 3 == [event["state"] for event in again]
    assert ("unused", 0) == (shop.status(coupon), shop.expense())


def test_an_event_id_means_one_event(shop: OrderShop) -> None:
    """With another body it is refused by its field; another user's equal id is another event."""
    shop.lock("o1", [shop.issue(shop.template())])
    shop.tell("e1", "o1", "paid", START, payment_no="pay-1")
    expected = ("INVALID", {"event_id": "belongs to another event"})

    for call in (
        lambda: shop.tell("e1", "o1", "paid", START, payment_no="pay-2"),
        lambda: shop.tell("e1", "o1", "closed", START),
        lambda: shop.tell("e1", "o2", "paid", START, payment_no="pay-1"),
        lambda: shop.tell("e1", "o1", "paid", START - MINUTE, payment_no="pay-1"),
    ):
        assert expected == refused_without_a_trace(shop, call)
    assert "waiting" == replace(shop, user="bob").tell("e1", "o1", "paid", START)["state"]


def test_events_wait_for_their_order(shop: OrderShop) -> None:
    """The lock takes them along, and says how the order stands then; another user's or order's are left alone."""
    shop.tell("e1", "o1", "paid", START, payment_no="pay-1")
    shop.tell("e2", "o2", "paid", START)
    replace(shop, user="bob").tell("e3", "o1", "paid", START)

    locked = shop.lock("o1", [shop.issue(shop.template())])

    assert ("redeemed", "pay-1") == (locked["status"], locked["payment_no"])
    assert [("e1", "applied"), ("e2", "waiting"), ("e3", "waiting")] == shop.rows(
        "SELECT event_id, state FROM order_event ORDER BY event_id"
    )
    assert_sound(shop.services)


@pytest.mark.parametrize("directly", [False, True])
def test_a_refund_waits_for_its_payment(shop: OrderShop, directly: bool) -> None:
    """By call: the answer is the payment's, and the refund is done with it."""
    coupon = shop.issue(shop.template())
    if not directly:
        shop.lock("o1", [coupon])
    event = shop.tell("e1", "o1", "refunded", START, refund_no="ref-1", **PART)

    paid = shop.pay_directly("o1", [coupon]) if directly else shop.pay("o1")

    assert ("waiting", "redeemed") == (event["state"], paid["status"])
    assert ["ref-1"] == [refund["refund_no"] for refund in shop.read("o1")["refunds"]]
    assert 667 == shop.expense()
    assert_sound(shop.services)


def test_an_event_without_a_number_bears_its_own(shop: OrderShop) -> None:
    """The event's id stands for the payment's and for the refund's; a call that repeats it knows that number."""
    shop.lock("o1", [shop.issue(shop.template())])
    shop.tell("pay-7", "o1", "paid", START)
    shop.tell("ref-7", "o1", "refunded", START, **PART)

    assert "pay-7" == shop.pay("o1", "pay-7")["payment_no"]
    assert "ref-7" == shop.refund("o1", "ref-7", [("1", 1)])["refund_no"]
    assert "applied" == shop.tell("other", "o1", "paid", START)["state"]
    assert 667 == shop.expense()


def test_a_payment_that_is_told_again_after_the_end_says_what_was(shop: OrderShop) -> None:
    """By another event: the order was paid, whatever came back since."""
    shop.lock("o1", [shop.issue(shop.template())])
    shop.tell("e1", "o1", "paid", START, payment_no="pay-1")
    shop.tell("e2", "o1", "closed", START + timedelta(minutes=1))

    again = shop.tell("e3", "o1", "paid", START, payment_no="pay-1")

    assert ("applied", None) == (again["state"], again["code"])
    assert 0 == shop.expense()
    assert_sound(shop.services)


def test_an_event_and_a_call_of_one_number_are_one(shop: OrderShop) -> None:
    """Whichever is first."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.pay("o1")

    assert "applied" == shop.tell("e1", "o1", "paid", START, payment_no="pay-1")["state"]
    shop.refund("o1", "ref-1", [("1", 1)])
    assert "applied" == shop.tell("e2", "o1", "refunded", START, refund_no="ref-1", **PART)["state"]
    shop.tell("e3", "o1", "refunded", START, refund_no="ref-2", **FULL)
    assert "ref-2" == shop.refund("o1", "ref-2")["refund_no"]
    assert ["lock", "redeem", "refund"] == [action for action, _, _ in shop.flow(coupon)]
    assert (3, 0) == (len(shop.ledger()), shop.expense())


def test_what_an_order_refuses_is_refused_for_good(shop: OrderShop) -> None:
    """With the code; the event is kept, and the order stays as it was."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.pay("o1")
    shop.pay_directly("o2", [shop.issue(shop.template())], payment="pay-2")
    shop.refund("o2", "ref-2")
    before = {name: rows for name, rows in books(shop.services).items() if name != "order_event"}

    told = [
        shop.tell("e1", "o1", "paid", START, payment_no="pay-9"),
        shop.tell("e2", "o1", "refunded", START, lines=[{"line_id": "9", "quantity": 1}]),
        shop.tell("e3", "o1", "refunded", START, lines=[{"line_id": "1", "quantity": 2}]),
        shop.tell("e4", "o1", "refunded", START, refund_no="ref-2", **FULL),
        shop.tell("e5", "o2", "refunded", START, **FULL),
    ]

    assert [
        "ALREADY_REDEEMED",
        "VALIDATION_FAILED",
        "VALIDATION_FAILED",
        "VALIDATION_FAILED",
        "NOTHING_LEFT",
    ] == [event["code"] for event in told]
    assert {"refused"} == {event["state"] for event in told}
    assert before == {name: rows for name, rows in books(shop.services).items() if name != "order_event"}


def test_a_payment_that_is_heard_too_late_is_refused(shop: OrderShop) -> None:
    """Another order has the coupon; it is told as the call would be (CASES 12)."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=15)
    shop.sweep()
    shop.lock("o2", [coupon])

    event = shop.tell("e1", "o1", "paid", START + MINUTE)

    assert ("refused", "LOCK_EXPIRED") == (event["state"], event["code"])
    assert event == shop.tell("e1", "o1", "paid", START + MINUTE)
    assert_sound(shop.services)


def test_an_event_of_the_future_is_refused(shop: OrderShop) -> None:
    """Clocks may differ by minutes."""
    ahead = START + 5 * MINUTE

    assert ("INVALID", {"occurred_at": "It lies in the future"}) == refused_without_a_trace(
        shop, lambda: shop.tell("e1", "o1", "paid", ahead + timedelta(milliseconds=1))
    )
    assert "waiting" == shop.tell("e1", "o1", "paid", ahead)["state"]


def test_an_event_waits_for_a_day(shop: OrderShop) -> None:
    """An order without coupons is never known here; a refund of one that was never paid is refused likewise."""
    shop.lock("o2", [shop.issue(shop.template())])
    for order, more in (("o1", FULL), ("o2", FULL)):
        shop.tell(f"e-{order}", order, "refunded", START, **more)

    shop.clock.now = START + timedelta(hours=24) - timedelta(milliseconds=1)
    settle_met_events(shop.services)
    waiting = shop.rows("SELECT state, code FROM order_event ORDER BY event_id")
    shop.clock.pass_by(milliseconds=1)
    settle_met_events(shop.services)

    assert [("waiting", "ORDER_NOT_FOUND"), ("waiting", "NOT_REDEEMED")] == waiting
    refused = [shop.tell(f"e-{order}", order, "refunded", START, **FULL) for order in ("o1", "o2")]
    assert [("refused", "ORDER_NOT_FOUND"), ("refused", "NOT_REDEEMED")] == [
        (event["state"], event["code"]) for event in refused
    ]
    shop.pay("o2")
    assert 2_000 == shop.expense()


@pytest.mark.parametrize("lies_minutes", [0, 4])
def test_an_event_that_came_at_the_moment_of_its_lock_is_settled_by_the_sweep(
    shop: OrderShop, lies_minutes: int
) -> None:
    """Neither saw the other; the sweep sees both, once."""
    coupon = shop.issue(shop.template())
    shop.tell("e1", "o9", "paid", START, payment_no="pay-1")
    shop.lock("o1", [coupon])
    shop.execute("UPDATE order_event SET order_no = 'o1'")
    shop.clock.pass_by(minutes=lies_minutes)

    looked_at = settle_met_events(shop.services), settle_met_events(shop.services)

    assert (1, 0) == looked_at
    assert ("redeemed", 2_000) == (shop.status(coupon), shop.expense())
    assert_sound(shop.services)


def test_a_waiting_refund_is_not_looked_at_before_its_payment(shop: OrderShop) -> None:
    """The sweep leaves it to the payment, and sees to one that missed it."""
    shop.lock("o1", [shop.issue(shop.template())])
    shop.tell("e1", "o1", "refunded", START, **FULL)

    before = settle_met_events(shop.services)
    shop.execute("UPDATE order_event SET order_no = 'o9'")
    shop.pay("o1")
    shop.execute("UPDATE order_event SET order_no = 'o1'")

    assert (0, 1) == (before, settle_met_events(shop.services))
    assert 0 == shop.expense()


def test_a_broken_order_does_not_keep_others_from_their_events(shop: OrderShop) -> None:
    """Its books contradict one another: it is left to a person, and the sweep goes on."""
    template = shop.template()
    for number in range(3):
        shop.tell(f"e{number}", f"x{number}", "paid", START)
        shop.lock(f"o{number}", [shop.issue(template)])
    shop.execute("UPDATE order_event SET order_no = replace(order_no, 'x', 'o')")
    shop.execute("UPDATE coupon SET status = 'revoked' WHERE order_no = 'o1'")

    settle_met_events(shop.services)

    assert [("o0", "redeemed"), ("o1", "locked"), ("o2", "redeemed")] == shop.rows(
        "SELECT order_no, status FROM coupon_order ORDER BY order_no"
    )
