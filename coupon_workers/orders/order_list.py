"""A user's orders as a list: how each stands, and the names of the coupons it was placed with, come back or not."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.services import Services

# Few orders of one user: found by the first half of the key and sorted. The uses are those of the last lock.
_NEWEST = text("""
    SELECT o.order_no, o.status, o.refund_count > 0 AS is_returned_in_part,
           o.fully_returned_at IS NOT NULL AS is_returned,
           ARRAY(SELECT t.name FROM coupon_use u JOIN coupon_template t USING (template_id)
                  WHERE u.user_id = o.user_id AND u.order_no = o.order_no AND u.lock_no = o.lock_no
                  ORDER BY u.position) AS coupon_names
      FROM coupon_order o
     WHERE o.user_id = :user_id
     ORDER BY o.created_at DESC, o.order_no LIMIT :limit""")


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """``status`` as orders have it; what was sent back is told beside it."""

    order_no: str
    status: str
    is_returned_in_part: bool
    is_returned: bool
    coupon_names: list[str]


def newest_orders(services: Services, user_id: str, *, limit: int) -> list[ListedOrder]:
    """The user's newest orders with coupons, those that were let go included. Raises ``StoreUnavailable``."""
    with database_errors(), services.engine.connect() as connection:
        rows = connection.execute(_NEWEST, {"user_id": user_id, "limit": limit}).mappings()
        return [ListedOrder(**row) for row in rows]
