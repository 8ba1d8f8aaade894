"""Calls that look at an order and its coupons in one statement, and find that another call was there meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.orders import lock, order_desk, release
from coupon_workers.orders.order_request import LockBody
from coupon_workers.orders.order_row import hold_coupons_of_new_order
from coupon_workers.runtime.services import Services
from tests.support.order_race import Act, code_of, row_held, waiting
from tests.support.order_shop import OrderShop
from tests.support.sale import assert_sound
from tests.support.workshop import eventually

COUPON = "SELECT 1 FROM coupon WHERE coupon_id = :coupon"
ORDER = "SELECT 1 FROM coupon_order WHERE order_no = :order"


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def locked_anew(shop: OrderShop, coupon: int, meanwhile: Act) -> object:
    """What ``meanwhile`` returns or raises, which waits for order ``o1`` while that lets its coupons go and locks
    ``coupon`` instead, in one transaction."""
    body = LockBody.model_validate(shop.body([coupon]))
    engine = shop.services.engine
    with ThreadPoolExecutor(1) as threads:
        with engine.begin() as connection:
            release.release(connection, shop.clock.now, "ann", "o1", "another cart", "key:orders")
            lock.lock(connection, shop.clock.now, "o1", body, "key:orders")
            future = threads.submit(meanwhile)
            assert eventually(lambda: waiting(engine) == 1)
        return future.exception() or future.result()


def test_a_payment_that_waits_while_its_order_is_locked_anew_redeems_the_new_lock(shop: OrderShop) -> None:
    """It saw the order as it became, and the coupons as they had been: it looks again."""
    template = shop.template()
    old, new = shop.issue(template), shop.issue(template)
    shop.lock("o1", [old])

    paid = locked_anew(shop, new, partial(shop.pay, "o1"))

    assert isinstance(paid, dict)
    assert [str(new)] == [use["coupon_no"] for use in paid["applied"]]
    assert ("unused", "redeemed") == (shop.status(old), shop.status(new))
    assert 2_000 == shop.expense()
    assert_sound(shop.services)


def test_a_payment_that_waits_while_its_coupon_is_locked_anew_redeems_it_once(shop: OrderShop) -> None:
    """The coupon is the same, and its use is of another lock."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])

    paid = locked_anew(shop, coupon, partial(shop.pay, "o1"))

    assert "OK" == code_of(paid)
    assert ["lock", "release", "lock", "redeem"] == [action for action, _, _ in shop.flow(coupon)]
    assert 1 == len(shop.ledger())
    assert_sound(shop.services)


def test_an_order_that_is_overtaken_every_time_is_told_to_come_again(
    shop: OrderShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of its tries is left, and the next one finds everything as it was."""
    template = shop.template()
    old, new = shop.issue(template), shop.issue(template)
    shop.lock("o1", [old])
    monkeypatch.setattr(order_desk, "TRIES", 1)

    outcome = locked_anew(shop, new, partial(shop.pay, "o1"))

    assert isinstance(outcome, StoreUnavailable)
    assert ("unused", "locked", 0) == (shop.status(old), shop.status(new), shop.expense())
    assert "redeemed" == shop.pay("o1")["status"]
    assert_sound(shop.services)


def test_a_first_lock_that_another_came_before_and_let_go_is_a_second_one(shop: OrderShop) -> None:
    """When it looked there was no such order; what the other lock held is none of its coupons."""
    template = shop.template()
    own, others = shop.issue(template), shop.issue(template)
    engine = shop.services.engine

    with ThreadPoolExecutor(1) as threads:
        with row_held(engine, COUPON, coupon=own):
            future = threads.submit(shop.lock, "o1", [own])
            assert eventually(lambda: waiting(engine) == 1)
            shop.lock("o1", [others])
            shop.release("o1")
        locked = future.result()

    assert [str(own)] == [use["coupon_no"] for use in locked["applied"]]
    assert [str(own)] == [use["coupon_no"] for use in shop.read("o1")["applied"]]
    assert ("locked", "unused") == (shop.status(own), shop.status(others))
    assert_sound(shop.services)


def test_a_lock_of_a_known_order_waits_for_it_and_holds_no_coupon_meanwhile(shop: OrderShop) -> None:
    """The order first, then its coupons: so no two ever wait for each other."""
    template = shop.template()
    first, second = shop.issue(template), shop.issue(template)
    shop.lock("o1", [first])
    shop.release("o1")
    engine = shop.services.engine

    with ThreadPoolExecutor(1) as threads:
        with row_held(engine, ORDER, order="o1"):
            future = threads.submit(shop.lock, "o1", [second])
            assert eventually(lambda: waiting(engine) == 1)
            with engine.begin() as other:
                free = other.execute(text(f"{COUPON} FOR UPDATE NOWAIT"), {"coupon": second}).all()
        locked = future.result()

    assert 1 == len(free)
    assert [str(second)] == [use["coupon_no"] for use in locked["applied"]]
    assert_sound(shop.services)


def test_looking_for_a_new_order_holds_a_known_one_and_no_coupon(shop: OrderShop) -> None:
    """Of an order that is not known it holds the coupons, those of the user alone."""
    template = shop.template()
    coupon, foreign = shop.issue(template), shop.issue(template, "bob")
    shop.lock("o1", [shop.issue(template)])
    engine = shop.services.engine

    with engine.begin() as connection, engine.connect() as other:
        known = hold_coupons_of_new_order(connection, "ann", "o1", [coupon])
        other.execute(text(f"{COUPON} FOR UPDATE NOWAIT"), {"coupon": coupon})
        with pytest.raises(OperationalError, match="could not obtain lock"):
            other.execute(text(f"{ORDER} FOR UPDATE NOWAIT"), {"order": "o1"})
        other.rollback()
        new = hold_coupons_of_new_order(connection, "ann", "o2", [foreign, coupon])
        with pytest.raises(OperationalError, match="could not obtain lock"):
            other.execute(text(f"{COUPON} FOR UPDATE NOWAIT"), {"coupon": coupon})

    assert [] == known
    assert [coupon] == [row["coupon_id"] for row in new]
