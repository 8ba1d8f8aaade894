"""An order of two coupons one of which was broken behind our back: every call is answered by name, none half done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coupon_workers.orders import unlock_sweep
from coupon_workers.orders.unlock_sweep import settle_met_events
from coupon_workers.runtime.services import Services
from tests.support.order_books import BROKEN, refused_without_a_trace
from tests.support.order_shop import OrderShop
from tests.support.recon_reading import found

DAMAGES = {
    "the coupon is unused": "UPDATE coupon SET status = 'unused', order_no = NULL WHERE coupon_id = :broken",
    "the coupon is revoked": "UPDATE coupon SET status = 'revoked' WHERE coupon_id = :broken",
    "the coupon is another order's": "UPDATE coupon SET order_no = 'o9' WHERE coupon_id = :broken",
    "the coupon is gone": "DELETE FROM coupon WHERE coupon_id = :broken",
}
DAMAGED_USES = {
    "the use is returned": "UPDATE coupon_use SET state = 'returned' WHERE coupon_id = :broken",
    "the use is gone": "DELETE FROM coupon_use WHERE coupon_id = :broken",
}


class BrokenOrder:
    """Order ``o1`` of the coupons ``whole`` and ``broken``."""

    def __init__(self, shop: OrderShop) -> None:
        self.shop = shop
        template = shop.template()
        self.whole, self.broken = shop.issue(template), shop.issue(template)
        shop.lock("o1", [self.whole, self.broken])

    def breaks(self, damage: str) -> None:
        """Change the one coupon, or its use, in the tables."""
        self.shop.execute(damage, broken=self.broken)


@pytest.fixture
def order(services: Services) -> BrokenOrder:
    """It is locked, and whole."""
    return BrokenOrder(OrderShop(services))


ON_LOCKED: dict[str, Callable[[BrokenOrder], Any]] = {
    "unlock": lambda order: order.shop.unlock(order.whole),
    "release": lambda order: order.shop.release("o1"),
    "redeem": lambda order: order.shop.pay("o1"),
}


@pytest.mark.parametrize("call", ON_LOCKED)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_locked_order_that_lacks_a_coupon_is_left_alone(order: BrokenOrder, damage: str, call: str) -> None:
    """Also by an operator who means its other coupon; and reconciliation names what is broken."""
    order.breaks(DAMAGES[damage])

    assert BROKEN == refused_without_a_trace(order.shop, lambda: ON_LOCKED[call](order))
    assert found(order.shop.services)


@pytest.mark.parametrize("damage", [*DAMAGES, *DAMAGED_USES])
def test_a_redeemed_order_that_lacks_a_coupon_is_not_returned(order: BrokenOrder, damage: str) -> None:
    """Half of its discount would be forgotten."""
    order.shop.pay("o1")
    order.breaks((DAMAGES | DAMAGED_USES)[damage])

    assert BROKEN == refused_without_a_trace(order.shop, lambda: order.shop.refund("o1", "ref-1"))
    assert found(order.shop.services)


@pytest.mark.parametrize("damage", DAMAGED_USES)
def test_an_order_without_one_of_its_uses_is_not_paid(order: BrokenOrder, damage: str) -> None:
    """It would book less than its buyer was granted."""
    order.breaks(DAMAGED_USES[damage])

    assert BROKEN == refused_without_a_trace(order.shop, lambda: order.shop.pay("o1"))


@pytest.mark.parametrize("kind", ["paid", "closed"])
def test_an_event_of_a_broken_order_waits_until_it_is_mended(order: BrokenOrder, kind: str) -> None:
    """A refusal would be for good, and the order centre does not tell it again."""
    shop = order.shop
    order.breaks(DAMAGES["the coupon is unused"])

    told = shop.tell("e1", "o1", kind, shop.clock.now)
    tried = settle_met_events(shop.services)
    still = shop.tell("e1", "o1", kind, shop.clock.now)
    shop.execute("UPDATE coupon SET status = 'locked', order_no = 'o1' WHERE coupon_id = :id", id=order.broken)
    settle_met_events(shop.services)

    assert [("waiting", "ORDER_BROKEN")] * 2 == [(event["state"], event["code"]) for event in (told, still)]
    assert 1 == tried
    assert "applied" == shop.tell("e1", "o1", kind, shop.clock.now)["state"]
    ended = {"paid": "redeemed", "closed": "unused"}[kind]
    assert [ended, ended] == [shop.status(order.whole), shop.status(order.broken)]


def test_a_refund_of_a_broken_order_waits_until_it_is_mended(order: BrokenOrder) -> None:
    """Its money is known then, and not before."""
    shop = order.shop
    shop.pay("o1")
    order.breaks(DAMAGES["the coupon is unused"])
    full = {"refund_no": "ref-1", "full": True}

    told = shop.tell("e1", "o1", "refunded", shop.clock.now, **full)
    shop.execute("UPDATE coupon SET status = 'redeemed', order_no = 'o1' WHERE coupon_id = :id", id=order.broken)
    settle_met_events(shop.services)

    assert ("waiting", "ORDER_BROKEN") == (told["state"], told["code"])
    assert "applied" == shop.tell("e1", "o1", "refunded", shop.clock.now, **full)["state"]
    assert 0 == shop.expense()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE coupon SET status = 'unused', order_no = NULL WHERE status = 'locked'",
        # An event that no code of ours would have stored: its order fails in a way that nobody foresaw.
        "UPDATE order_event SET body = '{}'",
    ],
)
def test_orders_that_stay_broken_hold_up_no_other(
    services: Services, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """There are more of them than one pass tries; that of the last is mended at last, and has its turn all the same."""
    monkeypatch.setattr(unlock_sweep, "MOST", 2)
    shop = OrderShop(services)
    for number in range(1, 6):
        shop.lock(f"o{number}", [shop.issue(shop.template())])
        shop.execute("UPDATE coupon SET status = 'redeemed' WHERE order_no = :order", order=f"o{number}")
        shop.clock.pass_by(seconds=1)
        shop.tell(f"e{number}", f"o{number}", "paid", shop.clock.now)
    shop.execute("UPDATE coupon SET status = 'locked'")
    shop.execute(damage + " AND order_no <> 'o5'" if "WHERE" in damage else damage + " WHERE order_no <> 'o5'")

    tried = []
    for _ in range(3):
        shop.clock.pass_by(seconds=30)
        tried.append(settle_met_events(shop.services))

    assert [2, 2, 2] == tried
    assert [("o5", "redeemed")] == shop.rows("SELECT order_no, status FROM coupon_order WHERE status <> 'locked'")


def test_a_pass_over_met_events_ends_with_its_turn(services: Services) -> None:
    """After one order at least; the next pass goes on with the others."""
    shop = OrderShop(services)
    for number in (1, 2):
        shop.lock(f"o{number}", [shop.issue(shop.template())])
        shop.execute("UPDATE coupon SET status = 'redeemed'")
        shop.tell(f"e{number}", f"o{number}", "paid", shop.clock.now)
        shop.execute("UPDATE coupon SET status = 'locked'")

    tried = [settle_met_events(shop.services, turn_s=0.0) for _ in range(3)]

    assert [1, 1, 0] == tried


def test_a_broken_order_ends_with_its_lock(order: BrokenOrder) -> None:
    """The sweep lets go what is still held; the payment that comes then is answered by what is free."""
    shop = order.shop
    order.breaks(DAMAGES["the coupon is revoked"])
    shop.clock.pass_by(minutes=15)

    assert 1 == shop.sweep()

    assert "unused" == shop.status(order.whole)
    assert "LOCK_EXPIRED" == refused_without_a_trace(shop, lambda: shop.pay("o1"))[0]
