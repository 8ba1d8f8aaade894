"""The sweep over locks that have run out (DESIGN 8): in chunks, around whatever is held, and on from where it died."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from coupon_workers.errors import StoreUnavailable
from coupon_workers.orders import unlock_sweep
from coupon_workers.orders.unlock_sweep import CHUNK, release_overdue_locks
from coupon_workers.runtime.services import Services
from tests.support.gift import at_once
from tests.support.lost_commit import commit_lost
from tests.support.order_heap import heap
from tests.support.order_race import row_held
from tests.support.order_shop import START, OrderShop
from tests.support.sale import assert_sound

MANY = 1_000
COUNTS = "SELECT status, count(*) FROM coupon_order GROUP BY status ORDER BY status"


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def test_a_thousand_orders_are_released_in_one_go(shop: OrderShop) -> None:
    """Each with its coupon, its step by the deadline, and its event; those that still hold are left alone."""
    heap(shop, MANY, status="locked", until=START)
    shop.lock("o1", [shop.issue(shop.template())])

    assert (MANY, 0) == (shop.sweep(), shop.sweep())

    assert [("locked", 1), ("released", MANY)] == shop.rows(COUNTS)
    assert [("locked", 1), ("unused", MANY)] == shop.rows(
        "SELECT status, count(*) FROM coupon GROUP BY status ORDER BY status"
    )
    assert [("release", "lock_deadline", MANY)] == shop.rows(
        "SELECT action, operator, count(*) FROM coupon_flow WHERE flow_no = 3 GROUP BY 1, 2"
    )
    assert [(MANY,)] == shop.rows("SELECT count(*) FROM outbox WHERE event = 'coupon.released'")
    assert [("timeout", START)] == shop.rows(
        "SELECT DISTINCT release_reason, released_at FROM coupon_order WHERE status = 'released'"
    )
    assert_sound(shop.services)


def test_an_order_with_many_coupons_lets_all_of_them_go(shop: OrderShop) -> None:
    """Fifty, each with a step."""
    template = shop.template(type="cash", amount_minor=100, threshold_minor=0)
    coupons = [shop.issue(template) for _ in range(50)]
    shop.lock("o1", coupons)
    shop.clock.pass_by(minutes=15)

    assert 1 == shop.sweep()
    assert {"unused"} == {shop.status(coupon) for coupon in coupons}
    assert_sound(shop.services)


def test_an_order_that_somebody_holds_is_stepped_around(shop: OrderShop) -> None:
    """It is not waited for: the next sweep finds it."""
    heap(shop, 2 * CHUNK + 50, status="locked", until=START)

    with row_held(shop.services.engine, "SELECT 1 FROM coupon_order WHERE order_no IN ('heap-1', 'heap-300')"):
        around = shop.sweep()

    assert (2 * CHUNK + 48, 2, 0) == (around, shop.sweep(), shop.sweep())
    assert_sound(shop.services)


def test_two_sweeps_at_once_share_the_work(shop: OrderShop) -> None:
    """Nothing twice; what one leaves because the other holds it is done by then."""
    heap(shop, MANY, status="locked", until=START)

    first, second = at_once(shop.sweep, shop.sweep)

    assert MANY == first + second
    assert [("released", MANY)] == shop.rows(COUNTS)
    assert [(MANY,)] == shop.rows("SELECT count(*) FROM coupon_flow WHERE action = 'release'")
    assert_sound(shop.services)


def test_a_sweep_that_dies_leaves_the_rest_to_the_next(shop: OrderShop) -> None:
    """The third commit fails: two chunks are done, and the third is whole."""
    heap(shop, MANY, status="locked", until=START)

    with commit_lost(shop.services.engine, nth=3), pytest.raises(StoreUnavailable):
        shop.sweep()

    assert [("locked", MANY - 2 * CHUNK), ("released", 2 * CHUNK)] == shop.rows(COUNTS)
    assert MANY - 2 * CHUNK == shop.sweep()
    assert [(MANY,)] == shop.rows("SELECT count(*) FROM coupon_flow WHERE action = 'release'")
    assert_sound(shop.services)


def test_a_sweep_ends_when_its_turn_is_over(shop: OrderShop) -> None:
    """So that shut-downs are short."""
    heap(shop, 2 * CHUNK, status="locked", until=START)

    assert [CHUNK, CHUNK, 0] == [release_overdue_locks(shop.services, turn_s=0) for _ in range(3)]


def test_the_most_overdue_go_first(shop: OrderShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits longest for a coupon gets it first."""
    monkeypatch.setattr(unlock_sweep, "CHUNK", 1)
    template = shop.template()
    for order, ttl_seconds in (("o1", 900), ("o2", 60), ("o3", 300)):
        shop.lock(order, [shop.issue(template)], ttl_seconds=ttl_seconds)
    shop.clock.pass_by(hours=1)

    released = []
    while release_overdue_locks(shop.services, turn_s=0):
        [(order,)] = shop.rows(
            "SELECT order_no FROM coupon_order WHERE status = 'released' ORDER BY updated_at DESC LIMIT 1"
        )
        released.append(order)
        shop.clock.pass_by(seconds=1)

    assert ["o2", "o3", "o1"] == released


def test_an_order_whose_coupon_is_gone_does_not_stop_the_sweep(shop: OrderShop) -> None:
    """Its lock ends; the coupon stays what somebody made of it behind our back, and the others are released."""
    template = shop.template()
    coupons = [shop.issue(template) for _ in range(3)]
    for number, coupon in enumerate(coupons):
        shop.lock(f"o{number}", [coupon])
    shop.execute("UPDATE coupon SET status = 'revoked' WHERE order_no = 'o1'")
    shop.clock.pass_by(minutes=15)

    assert 3 == shop.sweep()
    assert ["unused", "revoked", "unused"] == [shop.status(coupon) for coupon in coupons]
    assert ["issue", "lock"] == [
        action
        for (action,) in shop.rows(
            "SELECT action FROM coupon_flow WHERE coupon_id = :id ORDER BY flow_no", id=coupons[1]
        )
    ]


def test_users_see_their_coupons_at_once(shop: OrderShop) -> None:
    """Their kept wallets are forgotten; two users, one of them with a lock that still holds."""
    template = shop.template()
    bob = replace(shop, user="bob")
    coupons = shop.issue(template), bob.issue(template)
    shop.lock("o1", [coupons[0]])
    shop.clock.now = START + timedelta(minutes=10)
    bob.lock("o1", [coupons[1]])
    shop.clock.now = START + timedelta(minutes=15)

    assert 1 == shop.sweep()
    assert ("unused", "locked") == (shop.status(coupons[0]), shop.status(coupons[1]))
    assert (2_000, 0) == (shop.quote()["discount"], bob.quote()["discount"])
