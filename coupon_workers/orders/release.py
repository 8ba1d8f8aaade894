"""Letting the coupons of an unpaid order go: on its owner's word, or when its deadline has passed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, text

from coupon_workers.coupons.move_sql import recorded
from coupon_workers.coupons.transition import FlowAction
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.orders.broken_order import broken_order
from coupon_workers.orders.order_change import OrderChange
from coupon_workers.orders.order_row import Row, hold_order, read_uses

DEADLINE = "lock_deadline"
"""The operator of a release that nobody asked for."""

RELEASE = f"""
    , freed AS (
        UPDATE coupon_order o SET status = 'released', released_at = :now, release_reason = :reason, updated_at = :now
          FROM held WHERE o.user_id = held.user_id AND o.order_no = held.order_no AND o.status = 'locked'
        RETURNING o.user_id, o.order_no
    ), used AS (
        UPDATE coupon_use u SET state = 'released'
          FROM held
         WHERE u.user_id = held.user_id AND u.order_no = held.order_no AND u.lock_no = held.lock_no
           AND u.state = 'locked'
        RETURNING u.user_id, u.order_no, u.coupon_id
    ), still AS (
        SELECT c.user_id, c.coupon_id FROM used JOIN coupon c USING (user_id, coupon_id)
         ORDER BY c.coupon_id FOR NO KEY UPDATE OF c
    ), moved AS (
        UPDATE coupon c SET status = 'unused', order_no = NULL, version = c.version + 1, updated_at = :now
          FROM still JOIN used USING (user_id, coupon_id)
         WHERE c.user_id = still.user_id AND c.coupon_id = still.coupon_id AND c.status = 'locked'
           AND c.order_no = used.order_no
        RETURNING c.user_id, c.coupon_id, c.template_id, c.version, 'locked' AS before_status, c.status, used.order_no
    ),{recorded(FlowAction.RELEASE, "coupon.released")}
    SELECT (SELECT count(*) FROM freed) AS orders, (SELECT count(*) FROM moved) AS coupons,
           (SELECT count(*) FROM used) AS uses, ARRAY(SELECT DISTINCT user_id FROM freed) AS users"""
"""After a CTE ``held(user_id, order_no, lock_no)`` of locked orders, held by this transaction. Coupons are held in the
order of their numbers before they are moved."""

_ONE = text(
    "WITH held AS (SELECT user_id, order_no, lock_no FROM coupon_order"
    f" WHERE user_id = :user_id AND order_no = :order_no AND status = 'locked' FOR NO KEY UPDATE){RELEASE}"
)


def release(
    connection: Connection, now: datetime, user_id: str, order_no: str, reason: str, operator: str
) -> OrderChange:
    """Let the order's coupons go; one that has let them go already is answered as it is, and nothing is written.

    Raises ``NotFound`` ``ORDER_NOT_FOUND`` and ``Conflict`` ``ALREADY_REDEEMED``, ``ORDER_BROKEN``.
    """
    order = hold_order(connection, user_id, order_no)
    if order is None:
        raise NotFound("ORDER_NOT_FOUND", "this user has no order of that number with coupons")
    if order["status"] == "redeemed":
        raise Conflict("ALREADY_REDEEMED", "the order has been paid", payment_no=order["payment_no"])
    if order["status"] == "locked":
        release_held(connection, now, order, reason, operator)
        order = dict(order) | {"status": "released", "released_at": now}
    return OrderChange(order, read_uses(connection, order))


def release_held(connection: Connection, now: datetime, order: Row, reason: str, operator: str) -> None:
    """Let go the coupons of a locked order that this transaction holds. Raises ``Conflict`` ``ORDER_BROKEN``."""
    released = connection.execute(
        _ONE,
        {
            "user_id": order["user_id"],
            "order_no": order["order_no"],
            "reason": reason,
            "operator": operator,
            "request_id": None,
            "now": now,
        },
    ).one()
    if not released.coupons == released.uses > 0:
        raise broken_order(order["order_no"])
