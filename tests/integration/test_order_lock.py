"""Locking coupons for an order (API.md, Orders): all or none, for one order at a time."""

from __future__ import annotations

import pytest

from coupon_workers.runtime.services import Services
from tests.support.order_shop import CART, OrderShop, line, refused
from tests.support.sale import assert_sound


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def test_a_lock_says_what_the_coupon_takes_off_and_until_when(shop: OrderShop) -> None:
    """The whole answer, the coupon's status, its step, the event for listeners; nothing in the ledger."""
    coupon = shop.issue(shop.template())

    answer = shop.lock("o1", [coupon])

    assert {
        "order_no": "o1",
        "user_id": "ann",
        "status": "locked",
        "currency": "CNY",
        "applied": [
            {
                "coupon_no": str(coupon),
                "discount": 2_000,
                "allocations": [{"line_id": "1", "amount": 1_333}, {"line_id": "2", "amount": 667}],
            }
        ],
        "subtotal": 15_000,
        "discount": 2_000,
        "payable": 13_000,
        "locked_until": "2026-11-11T04:15:00Z",
        "released_at": None,
        "payment_no": None,
        "paid_at": None,
        "redeemed_at": None,
    } == answer
    assert "locked" == shop.status(coupon)
    assert [("lock", "locked", "o1")] == shop.flow(coupon)
    assert [("coupon.locked", {"status": "locked", "order_no": "o1", "flow_no": 2})] == shop.rows(
        "SELECT event, detail FROM outbox"
    )
    assert [] == shop.ledger()
    assert_sound(shop.services)


def test_the_whole_way_of_an_order_with_two_coupons(shop: OrderShop) -> None:
    """Lock, redeem, refund in two parts: the money adds up, the coupons come back with the last piece."""
    first = shop.issue(shop.template())
    second = shop.issue(shop.template(type="percent_off", amount_minor=None, percent_off_bp=1_000, threshold_minor=0))

    locked = shop.lock("o1", [first, second])
    paid = shop.pay("o1")
    part = shop.refund("o1", "ref-1", [("1", 1)])
    rest = shop.refund("o1", "ref-2")

    assert (3_300, 11_700) == (locked["discount"], locked["payable"])
    assert ("redeemed", locked["applied"]) == (paid["status"], paid["applied"])
    assert 11_700 == part["refund_amount"] + rest["refund_amount"]
    assert 3_300 == part["discount_reversed"] + rest["discount_reversed"]
    assert ["redeemed", "redeemed"] == [coupon["status"] for coupon in part["coupons"]]
    assert ["unused", "unused"] == [coupon["status"] for coupon in rest["coupons"]]
    assert [("lock", "locked", "o1"), ("redeem", "redeemed", "o1"), ("refund", "unused", "o1")] == shop.flow(first)
    assert 0 == shop.expense()
    assert ("NOTHING_LEFT", {}) == refused(lambda: shop.refund("o1", "ref-3"))
    assert_sound(shop.services)


def test_an_unpaid_order_is_released_at_its_deadline_and_may_lock_again(shop: OrderShop) -> None:
    """Not a moment before; the sweep writes one step."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])

    shop.clock.pass_by(minutes=14, seconds=59.999)
    early = shop.sweep()
    shop.clock.pass_by(milliseconds=1)
    swept = shop.sweep(), shop.sweep()

    assert (0, (1, 0)) == (early, swept)
    assert [("lock", "locked", "o1"), ("release", "unused", "o1")] == shop.flow(coupon)
    assert "locked" == shop.lock("o1", [coupon])["status"]
    assert_sound(shop.services)


def test_a_late_event_and_direct_payment(shop: OrderShop) -> None:
    """A smoke test of the feed and of direct redemption."""
    coupon = shop.issue(shop.template())
    paid = shop.pay_directly("o1", [coupon])

    closed = shop.tell("e1", "o1", "closed", shop.clock.now)

    assert "redeemed" == paid["status"]
    assert "applied" == closed["state"]
    assert "unused" == shop.status(coupon)
    assert 0 == shop.expense()
    assert [line("1", 10_000), line("2", 5_000)] == list(CART)
    assert 2_000 == shop.quote()["discount"]
    assert shop.read("o1")["refunds"][0]["refund_amount"] == 13_000
    assert_sound(shop.services)
