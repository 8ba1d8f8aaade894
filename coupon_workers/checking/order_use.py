"""DESIGN 3.5: an order holds its coupons by the uses of its last lock, all in the state in which it is itself."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "order_use"

# A coupon that an order had on an earlier lock and no longer has stays released.
_DIFFERENT = """
    SELECT user_id, u.order_no, u.coupon_id, u.state, u.lock_no, o.status, o.lock_no AS last_lock_no
      FROM coupon_use u
      LEFT JOIN coupon_order o USING (user_id, order_no)
     WHERE o.status IS NULL
        OR CASE WHEN u.lock_no < o.lock_no THEN u.state <> 'released'
                WHEN u.lock_no > o.lock_no THEN true
                WHEN u.state = 'returned' THEN o.status <> 'redeemed' OR o.fully_returned_at IS NULL
                ELSE u.state <> o.status END
     ORDER BY user_id, u.order_no, u.coupon_id LIMIT :breach_limit
"""

_EMPTY = """
    SELECT user_id, order_no, status, lock_no
      FROM coupon_order o
     WHERE NOT EXISTS (SELECT FROM coupon_use u WHERE u.user_id = o.user_id AND u.order_no = o.order_no
                                                  AND u.lock_no = o.lock_no)
     ORDER BY user_id, order_no LIMIT :breach_limit
"""


def order_use(services: Services) -> list[Breach]:
    """Uses that are not as their order is, and orders without a coupon."""
    different = [
        Breach(
            RULE,
            f"order {row.order_no} user {row.user_id} coupon {row.coupon_id}",
            "an order" if row.status is None else f"as the order: {row.status}, lock {row.last_lock_no}",
            f"{row.state}, lock {row.lock_no}",
        )
        for row in rows(services, _DIFFERENT)
    ]
    empty = [
        Breach(RULE, f"order {row.order_no} user {row.user_id}", f"a coupon on lock {row.lock_no}", "none")
        for row in rows(services, _EMPTY)
    ]
    return different + empty
