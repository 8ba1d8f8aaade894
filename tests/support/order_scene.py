"""Orders in every state, to be broken behind everyone's back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coupon_workers.checking.report import check_all
from tests.support.order_shop import OrderShop


@dataclass
class OrderScene:
    """Orders of ann in every state, each with a coupon of 20.00, which is split 13.33 and 6.67 between two lines.

    ``held`` is locked; ``paid`` is redeemed; ``letgo`` is released, its coupon free; ``part`` has returned its second
    line, ``back`` everything. An event waits for an order that nobody knows.
    """

    shop: OrderShop
    coupons: dict[str, int]

    def sql(self, statement: str, **arguments: object) -> OrderScene:
        """Change the database behind everyone's back; coupons by their orders: ``:held``. The scene, for what comes
        next."""
        named = {order: coupon for order, coupon in self.coupons.items() if f":{order}" in statement}
        self.shop.execute(statement, **named, **arguments)
        return self

    def broken(self, *, patience_s: float = 0) -> set[str]:
        """The names of the invariants that do not hold."""
        return {breach.invariant for breach in check_all(self.shop.services, patience_s=patience_s).breaches}


def order_scene(shop: OrderShop, *, unused: Sequence[str] = ()) -> OrderScene:
    """One order of each kind; ``unused`` are coupons of no order."""
    template = shop.template()
    orders = ("held", "paid", "letgo", "part", "back")
    coupons = {name: shop.issue(template) for name in (*orders, *unused)}
    for order in orders:
        shop.lock(order, [coupons[order]])
    shop.release("letgo")
    for order in ("paid", "part", "back"):
        shop.pay(order, f"pay-{order}")
    shop.refund("part", "ref-part", [("2", 1)])
    shop.refund("back", "ref-1", [("1", 1)])
    shop.refund("back", "ref-2")
    shop.tell("e1", "unknown", "paid", shop.clock.now)
    return OrderScene(shop, coupons)
