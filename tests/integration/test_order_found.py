"""What the model of orders and the checker have found, each as a plain test of its kind."""

from __future__ import annotations

import pytest

from coupon_workers.orders.unlock_sweep import CHUNK, settle_met_events
from coupon_workers.runtime.services import Services
from tests.support.order_shop import OrderShop
from tests.support.sale import assert_sound


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def test_a_refund_that_occurred_before_its_payment_does_not_wait_for_the_sweep(shop: OrderShop) -> None:
    """By the clocks of the order centre; both were heard before the lock, which takes them along."""
    coupon = shop.issue(shop.template())
    occurred_at = shop.clock.now
    shop.tell("paid", "o1", "paid", shop.clock.pass_by(seconds=1), payment_no="pay-1")
    shop.tell("back", "o1", "refunded", occurred_at, full=True)

    answer = shop.lock("o1", [coupon])

    events = shop.rows("SELECT event_id, state FROM order_event ORDER BY event_id")
    assert "redeemed" == answer["status"]
    assert [("back", "applied"), ("paid", "applied")] == events
    assert "unused" == shop.status(coupon)
    assert 0 == shop.expense()
    assert_sound(shop.services)


def test_a_payment_that_missed_its_lock_is_not_refused_while_no_sweep_runs(shop: OrderShop) -> None:
    """They came at the same moment, and the sweep comes a day later: the buyer has paid, and his order is there."""
    coupon = shop.issue(shop.template())
    shop.tell("paid", "elsewhere", "paid", shop.clock.now, payment_no="pay-1")
    shop.lock("o1", [coupon])
    shop.execute("UPDATE order_event SET order_no = 'o1'")
    shop.clock.pass_by(hours=25)

    settle_met_events(shop.services)

    assert [("applied", None)] == shop.rows("SELECT state, code FROM order_event")
    assert ("redeemed", 2_000) == (shop.read("o1")["status"], shop.expense())
    assert_sound(shop.services)


def test_an_event_of_an_unknown_order_is_still_refused_after_a_day(shop: OrderShop) -> None:
    """Not a moment before; and a refund of an order that was never paid."""
    shop.lock("o1", [shop.issue(shop.template())])
    shop.tell("paid", "unknown", "paid", shop.clock.now)
    shop.tell("back", "o1", "refunded", shop.clock.now, full=True)
    shop.release("o1")

    shop.clock.pass_by(hours=23, minutes=59)
    settle_met_events(shop.services)
    early = shop.rows("SELECT DISTINCT state FROM order_event")
    shop.clock.pass_by(minutes=1)
    settle_met_events(shop.services)

    assert [("waiting",)] == early
    assert [("back", "refused", "NOT_REDEEMED"), ("paid", "refused", "ORDER_NOT_FOUND")] == shop.rows(
        "SELECT event_id, state, code FROM order_event ORDER BY event_id"
    )
    assert_sound(shop.services)


def test_one_sweep_refuses_every_event_that_is_late(shop: OrderShop) -> None:
    """A feed that tells of every order, with coupons or without, has more of them in a pass than one chunk."""
    shop.tell("e0", "unknown", "paid", shop.clock.now)
    shop.execute(
        "INSERT INTO order_event (user_id, event_id, order_no, type, occurred_at, body, fingerprint, state, code,"
        " received_at, tried_at)"
        " SELECT user_id, 'e' || number, order_no, type, occurred_at, body, fingerprint, state, code, received_at,"
        "        tried_at FROM order_event, generate_series(1, :more) AS number",
        more=2 * CHUNK,
    )
    shop.clock.pass_by(hours=24)

    settle_met_events(shop.services)

    assert [("refused", 2 * CHUNK + 1)] == shop.rows("SELECT state, count(*) FROM order_event GROUP BY state")
    assert_sound(shop.services)
