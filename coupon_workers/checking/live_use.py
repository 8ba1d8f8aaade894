"""DESIGN 3.5: a coupon is locked or redeemed by one order at most, and the order's use of it says the same."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "live_use"

# A second live use is one that differs: it is of another order, as an order has one use of a coupon.
_DIFFERENT = """
    SELECT user_id, coupon_id, c.status, c.order_no, u.state, u.order_no AS use_order_no
      FROM (SELECT user_id, coupon_id, status, order_no FROM coupon WHERE status IN ('locked', 'redeemed')) AS c
      FULL JOIN (SELECT user_id, coupon_id, state, order_no FROM coupon_use WHERE state IN ('locked', 'redeemed')) AS u
           USING (user_id, coupon_id)
     WHERE c.status IS DISTINCT FROM u.state OR c.order_no IS DISTINCT FROM u.order_no
     ORDER BY user_id, coupon_id LIMIT :breach_limit
"""

_STILL_NAMED = """
    SELECT user_id, coupon_id, status, order_no FROM coupon
     WHERE order_no IS NOT NULL AND status NOT IN ('locked', 'redeemed')
     ORDER BY user_id, coupon_id LIMIT :breach_limit
"""

_NO_USE = "no live use"


def live_use(services: Services) -> list[Breach]:
    """Locked or redeemed coupons without the live use that agrees, and live uses without such a coupon."""
    different = [
        Breach(
            RULE,
            f"coupon {row.coupon_id} user {row.user_id}",
            _standing(row.state, row.use_order_no) or _NO_USE,
            _standing(row.status, row.order_no) or "a coupon that no order holds",
        )
        for row in rows(services, _DIFFERENT)
    ]
    named = [
        Breach(RULE, f"coupon {row.coupon_id} user {row.user_id}", "no order", f"{row.status} by order {row.order_no}")
        for row in rows(services, _STILL_NAMED)
    ]
    return different + named


def _standing(state: str | None, order_no: str | None) -> str | None:
    return None if state is None else f"{state} by order {order_no}"
