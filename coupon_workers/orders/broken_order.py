"""An order that does not hold the coupons it says it holds: something broke the books, and nobody builds on them.

Reconciliation of the state names what is broken; until it is mended nothing of the order is changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from coupon_workers.errors import Conflict
from coupon_workers.orders.order_row import Row

ORDER_BROKEN = "ORDER_BROKEN"


def broken_order(order_no: str) -> Conflict:
    """The refusal, to be raised."""
    detail = "the order does not hold the coupons it says it holds: reconciliation of the state names what is broken"
    return Conflict(ORDER_BROKEN, detail, order_no=order_no)


def check_discounts(order: Row, discounts_minor: Sequence[int]) -> None:
    """The coupons that the order still has take off what the order says. Raises ``Conflict`` ``ORDER_BROKEN``."""
    if sum(discounts_minor) != order["discount_minor"]:
        raise broken_order(order["order_no"])
