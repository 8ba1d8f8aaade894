"""Repairs of locks: an order lets its coupons go, a coupon that no order holds is freed (DESIGN 3.5, 10).

Each is done in the transaction that ends its finding, and may be done twice. The order's row is held first, then the
coupons, as by everyone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.coupons.move_sql import recorded
from coupon_workers.coupons.transition import FlowAction
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.orders.order_row import hold_coupons, hold_order, read_uses
from coupon_workers.orders.release import release
from coupon_workers.runtime.services import Services

Row = Mapping[str, Any]
Outcome = dict[str, Any]

REASON = "reconciliation"
"""Why an order was released."""

# Only what the coupon's own row still says, and only while no use of it is live.
_FREE = text(f"""
    WITH moved AS (
        UPDATE coupon c SET status = 'unused', order_no = NULL, version = c.version + 1, updated_at = :now
         WHERE c.user_id = :user_id AND c.coupon_id = ANY(CAST(:coupon_ids AS bigint[]))
           AND c.status = 'locked' AND c.order_no = :order_no
           AND NOT EXISTS (SELECT FROM coupon_use u
                            WHERE u.user_id = c.user_id AND u.coupon_id = c.coupon_id
                              AND u.state IN ('locked', 'redeemed'))
        RETURNING c.user_id, c.coupon_id, c.template_id, c.version, 'locked' AS before_status, c.status,
                  CAST(:order_no AS text) AS order_no
    ),{recorded(FlowAction.RELEASE, "coupon.released")}
    SELECT coupon_id FROM moved ORDER BY coupon_id
""")

_LET_GO = text("""
    UPDATE coupon_use SET state = 'released'
     WHERE user_id = :user_id AND order_no = :order_no AND coupon_id = ANY(CAST(:coupon_ids AS bigint[]))
       AND state = 'locked'
""")
_LOCKED_USES = text(
    "SELECT coupon_id FROM coupon_use WHERE user_id = :user_id AND order_no = :order_no AND state = 'locked'"
)


def release_order(connection: Connection, services: Services, finding: Row, now: datetime, operator: str) -> Outcome:
    """Let the order's coupons go; those too that an order that has let go still holds.

    Raises ``NotFound`` ``ORDER_NOT_FOUND``; ``Conflict`` ``ALREADY_REDEEMED``, and ``CHANGED`` when it has locked again
    since, or does not hold its coupons.
    """
    user_id, order_no = finding["user_id"], finding["order_no"]
    order = hold_order(connection, user_id, order_no)
    if order is not None and order["status"] == "released":
        return {"order": "released", "freed": _free_left(connection, user_id, order_no, now, operator)}
    if order is not None and order["status"] == "locked":
        # Whom the order centre has closed has no right to any lock; else one that stands is a later one.
        if "event" not in finding["evidence"] and now < order["locked_until"]:
            raise Conflict("CHANGED", "the order has locked again", locked_until=order["locked_until"])
        _check_held(connection, order)
    change = release(connection, now, user_id, order_no, REASON, operator)
    return {"order": "released", "freed": [str(use["coupon_id"]) for use in change.uses]}


def _check_held(connection: Connection, order: Row) -> None:
    uses = [use for use in read_uses(connection, order) if use["state"] == "locked"]
    coupons = hold_coupons(connection, order["user_id"], [use["coupon_id"] for use in uses])
    held = [each for each in coupons if (each["status"], each["order_no"]) == ("locked", order["order_no"])]
    if not len(held) == len(uses) > 0:
        raise Conflict("CHANGED", "the order does not hold its coupons: what became of them comes first")


def _free_left(connection: Connection, user_id: str, order_no: str, now: datetime, operator: str) -> list[str]:
    key = {"user_id": user_id, "order_no": order_no}
    left = list(connection.scalars(_LOCKED_USES, key))
    hold_coupons(connection, user_id, left)
    return _free(connection, user_id, order_no, left, now, operator)


def free_coupon(connection: Connection, services: Services, finding: Row, now: datetime, operator: str) -> Outcome:
    """Free a locked coupon that no order holds, and end what is left of its use.

    Raises ``Conflict`` ``CHANGED`` when an order holds it by now, or it is locked no more; ``NotFound``
    ``COUPON_NOT_FOUND``.
    """
    user_id, order_no, coupon_id = finding["user_id"], finding["order_no"], finding["coupon_id"]
    order = hold_order(connection, user_id, order_no)
    if order is not None and order["status"] != "released":
        raise Conflict("CHANGED", f"the order is {order['status']}", order_status=order["status"])
    coupons = hold_coupons(connection, user_id, [coupon_id])
    if not coupons:
        raise NotFound("COUPON_NOT_FOUND", "this user has no coupon of that number")
    if coupons[0]["status"] == "unused":
        return {"coupon": "unused", "freed": []}
    freed = _free(connection, user_id, order_no, [coupon_id], now, operator)
    if not freed:
        status = coupons[0]["status"]
        raise Conflict("CHANGED", f"the coupon is {status} otherwise", coupon_status=status)
    return {"coupon": "unused", "freed": freed}


def _free(
    connection: Connection, user_id: str, order_no: str, coupon_ids: list[int], now: datetime, operator: str
) -> list[str]:
    """Those of the coupons that were still locked for the order, which the caller holds and which is not live."""
    named = {"user_id": user_id, "order_no": order_no, "coupon_ids": coupon_ids}
    connection.execute(_LET_GO, named)
    freed = connection.scalars(_FREE, named | {"now": now, "operator": operator, "request_id": None})
    return [str(coupon_id) for coupon_id in freed]
