"""Whoever changes an order holds its row first, then its coupons by their numbers: no two ever wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import Engine, text

from coupon_workers.orders.unlock_sweep import settle_met_events
from coupon_workers.runtime.services import Services
from tests.support.order_race import row_held, waiting
from tests.support.order_shop import OrderShop
from tests.support.sale import assert_sound
from tests.support.workshop import eventually

ORDER = "SELECT 1 FROM coupon_order WHERE order_no = :order"
COUPON = "SELECT 1 FROM coupon WHERE coupon_id = :coupon"
FREE = {
    "coupon": "SELECT coupon_id FROM coupon ORDER BY coupon_id FOR UPDATE SKIP LOCKED",
    "event": "SELECT event_id FROM order_event FOR UPDATE SKIP LOCKED",
}

Change = Callable[[OrderShop, int], object]
CHANGES: dict[str, Change] = {
    "redeem": lambda shop, last: shop.pay("o1"),
    "redeem late": lambda shop, last: [shop.clock.pass_by(hours=1), shop.pay("o1")],
    "lock anew": lambda shop, last: [shop.clock.pass_by(hours=1), shop.lock("o1", [last])],
    "release": lambda shop, last: shop.release("o1"),
    "close": lambda shop, last: shop.tell("e1", "o1", "closed", shop.clock.now),
    "unlock": lambda shop, last: shop.unlock(last),
    "settle what waits": lambda shop, last: settle_met_events(shop.services),
}


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def locked(shop: OrderShop) -> tuple[int, int]:
    """The two coupons of order ``o1``, whose payment was told at the moment of its lock and waits for the sweep."""
    template = shop.template()
    first, last = shop.issue(template), shop.issue(template)
    shop.tell("paid", "elsewhere", "paid", shop.clock.now, payment_no="pay-1")
    shop.lock("o1", [first, last])
    shop.execute("UPDATE order_event SET order_no = 'o1'")
    return first, last


def free(engine: Engine, of: str) -> list[object]:
    """Which coupons, or events, nobody holds."""
    with engine.begin() as connection:
        return list(connection.scalars(text(FREE[of])))


@pytest.mark.parametrize("change", CHANGES)
def test_whoever_waits_for_an_order_holds_nothing_of_it(shop: OrderShop, change: str) -> None:
    """No coupon, and no event: whoever has the order comes to them."""
    first, last = locked(shop)
    engine = shop.services.engine

    with ThreadPoolExecutor(1) as threads:
        with row_held(engine, ORDER, order="o1"):
            future = threads.submit(CHANGES[change], shop, last)
            assert eventually(lambda: waiting(engine) == 1)
            coupons, events = free(engine, "coupon"), free(engine, "event")
        future.result()

    assert ([first, last], ["paid"]) == (coupons, events)
    assert_sound(shop.services)


@pytest.mark.parametrize("change", [*CHANGES, "sweep", "refund"])
def test_whoever_waits_for_a_coupon_holds_none_of_a_higher_number(shop: OrderShop, change: str) -> None:
    """Another order may have the lower one and come for the higher."""
    first, last = locked(shop)
    engine = shop.services.engine
    act = partial(CHANGES.get(change, lambda *_: shop.refund("o1", "r1")), shop, last)
    if change == "refund":
        shop.pay("o1")
    if change == "sweep":
        shop.clock.pass_by(hours=1)
        act = partial(shop.sweep)

    with ThreadPoolExecutor(1) as threads:
        with row_held(engine, COUPON, coupon=first):
            future = threads.submit(act)
            assert eventually(lambda: waiting(engine) == 1)
            coupons = free(engine, "coupon")
        future.result()

    assert [last] == coupons
    assert_sound(shop.services)
