"""Letting an unpaid order's coupons go (API.md, Orders): each way once, and never what has been paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from coupon_workers.runtime.services import Services
from tests.support.order_books import BROKEN, nothing_written, refused_without_a_trace
from tests.support.order_shop import START, Json, OrderShop
from tests.support.sale import assert_sound

Cancel = Callable[[OrderShop], object]


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def time_out(shop: OrderShop) -> int:
    """Nobody pays."""
    shop.clock.now = START + timedelta(minutes=15)
    return shop.sweep()


CANCELS: dict[str, Cancel] = {
    "buyer": lambda shop: shop.release("o1", "buyer"),
    "payment service": lambda shop: shop.tell("e1", "o1", "closed", START, reason="payment failed"),
    "operator": lambda shop: shop.release("o1", "operator"),
    "time-out": time_out,
}


def test_a_release_frees_the_coupon(shop: OrderShop) -> None:
    """The whole answer, the step, the event for listeners; nothing in the ledger."""
    coupon = shop.issue(shop.template())
    locked = shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=1)

    released = shop.release("o1", "changed my mind")

    assert locked | {"status": "released", "released_at": "2026-11-11T04:01:00Z"} == released
    assert ("unused", "changed my mind") == (shop.status(coupon), shop.read("o1")["release_reason"])
    assert [("lock", "locked", "o1"), ("release", "unused", "o1")] == shop.flow(coupon)
    assert [("coupon.released", {"status": "unused", "order_no": "o1", "flow_no": 3})] == shop.rows(
        "SELECT event, detail FROM outbox WHERE event <> 'coupon.locked'"
    )
    assert [(None,)] == shop.rows("SELECT order_no FROM coupon")
    assert ([], 2_000) == (shop.ledger(), shop.quote()["discount"])
    assert_sound(shop.services)


@pytest.mark.parametrize(("first", "second"), list(product(CANCELS, CANCELS)))
def test_two_ways_to_cancel_release_once(shop: OrderShop, first: str, second: str) -> None:
    """The coupon ends unused, with one step; the second one is answered as the first (CASES 13)."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])

    CANCELS[first](shop)
    once = shop.read("o1")
    CANCELS[second](shop)

    assert once == shop.read("o1")
    assert [("lock", "locked", "o1"), ("release", "unused", "o1")] == shop.flow(coupon)
    assert 1 == len(shop.rows("SELECT 1 FROM outbox WHERE event = 'coupon.released'"))
    assert [("released",)] == shop.rows("SELECT state FROM coupon_use")
    assert_sound(shop.services)


def test_a_release_again_has_the_same_answer_and_no_row(shop: OrderShop) -> None:
    """Whatever the reason now, and whenever; also when the coupon is on another order by then (CASES 13)."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    first = shop.release("o1")
    shop.lock("o2", [coupon])
    shop.clock.pass_by(days=30)

    with nothing_written(shop.services):
        assert [first, first] == [shop.release("o1"), shop.release("o1", "operator")]
    assert "locked" == shop.status(coupon)


def test_a_release_before_its_lock_is_refused(shop: OrderShop) -> None:
    """And leaves nothing behind that would meet the lock; nor does another user's order of that number."""
    coupon = shop.issue(shop.template())

    assert ("ORDER_NOT_FOUND", {}) == refused_without_a_trace(shop, lambda: shop.release("o1"))
    shop.lock("o1", [coupon])
    assert ("ORDER_NOT_FOUND", {}) == refused_without_a_trace(shop, lambda: replace(shop, user="bob").release("o1"))
    assert "locked" == shop.status(coupon)


@pytest.mark.parametrize("returned", [False, True])
def test_a_paid_order_is_not_released(shop: OrderShop, returned: bool) -> None:
    """It is refunded; also when nothing is left of it."""
    shop.lock("o1", [shop.issue(shop.template())])
    shop.pay("o1")
    if returned:
        shop.refund("o1", "ref-1")

    assert ("ALREADY_REDEEMED", {"payment_no": "pay-1"}) == refused_without_a_trace(shop, lambda: shop.release("o1"))


def test_a_release_after_the_deadline_says_who_asked(shop: OrderShop) -> None:
    """It came before the sweep."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.pass_by(hours=1)

    shop.release("o1", "buyer")

    assert (0, "buyer") == (shop.sweep(), shop.read("o1")["release_reason"])
    assert [("claim",), ("key:orders",), ("key:orders",)] == shop.rows("SELECT operator FROM coupon_flow")


def test_each_release_of_an_order_that_locks_again_counts(shop: OrderShop) -> None:
    """Three locks, three releases, and a payment of the fourth."""
    coupon = shop.issue(shop.template())
    for _ in range(3):
        shop.lock("o1", [coupon])
        shop.release("o1")
    shop.lock("o1", [coupon])
    shop.pay("o1")

    assert ["lock", "release"] * 3 + ["lock", "redeem"] == [action for action, _, _ in shop.flow(coupon)]
    assert [(4, "redeemed")] == shop.rows("SELECT lock_no, status FROM coupon_order")
    assert 2_000 == shop.expense()
    assert_sound(shop.services)


def test_an_order_that_locks_other_coupons_lets_go_those_of_now(shop: OrderShop) -> None:
    """Those of an earlier lock are not touched, on whatever order they are by then."""
    template = shop.template()
    first, second = shop.issue(template), shop.issue(template)
    shop.lock("o1", [first])
    shop.release("o1")
    shop.lock("o2", [first])
    shop.lock("o1", [second])

    released = shop.release("o1")

    assert ([str(second)], "locked", "unused") == (
        [use["coupon_no"] for use in released["applied"]],
        shop.status(first),
        shop.status(second),
    )
    assert "redeemed" == shop.pay("o2")["status"]
    assert_sound(shop.services)


BEHIND_OUR_BACK: Json = {
    "the coupon is revoked": "UPDATE coupon SET status = 'revoked'",
    "the coupon is redeemed": "UPDATE coupon SET status = 'redeemed'",
    "the coupon is another order's": "UPDATE coupon SET order_no = 'o9'",
    "the use is gone": "DELETE FROM coupon_use",
    "the use is redeemed": "UPDATE coupon_use SET state = 'redeemed'",
    "the coupon is gone": "DELETE FROM coupon",
}


@pytest.mark.parametrize("change", BEHIND_OUR_BACK)
def test_a_lock_that_was_changed_behind_our_back_is_not_half_released(shop: OrderShop, change: str) -> None:
    """Refused by name, to a release and from a lock that would take its place after the deadline."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.execute(BEHIND_OUR_BACK[change])

    assert BROKEN == refused_without_a_trace(shop, lambda: shop.release("o1"))
    shop.clock.pass_by(minutes=15)
    assert BROKEN == refused_without_a_trace(shop, lambda: shop.lock("o1", [coupon]))
