"""Locking coupons for an order that is to be paid: all or none, until a deadline (API.md, Orders)."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from coupon_workers.errors import Conflict
from coupon_workers.orders.order_change import OrderChange
from coupon_workers.orders.order_event import was_closed
from coupon_workers.orders.order_request import LockBody
from coupon_workers.orders.order_row import (
    Row,
    hold_coupons,
    hold_coupons_of_new_order,
    hold_order,
    read_uses,
)
from coupon_workers.orders.placement import Placement, place
from coupon_workers.orders.release import DEADLINE, release_held


def lock(connection: Connection, now: datetime, order_no: str, body: LockBody, operator: str) -> OrderChange:
    """Lock the coupons of ``body`` for the order.

    The same again re-enters its own lock: the same answer, the same deadline. A lock past its deadline is let go
    first. The same again of an order that the order centre has closed is answered as it is. Raises ``Conflict``
    ``ALREADY_REDEEMED``, ``LOCKED_OTHERWISE`` when the order holds a lock for another cart or other coupons,
    ``ORDER_BROKEN``, and what ``place`` raises.
    """
    asked = Placement(
        order_no=order_no,
        order=body,
        coupon_ids=body.coupon_nos,
        fingerprint=body.fingerprint,
        locked_until=now + timedelta(seconds=body.ttl_seconds),
    )
    if held := hold_coupons_of_new_order(connection, body.user_id, order_no, body.coupon_nos):
        return place(connection, now, None, asked, operator, held)
    order = hold_order(connection, body.user_id, order_no)
    if order is not None:
        if order["status"] == "redeemed":
            raise Conflict("ALREADY_REDEEMED", "the order has been paid", payment_no=order["payment_no"])
        if order["status"] == "locked":
            if now < order["locked_until"]:
                return _re_entered(connection, order, body)
            # All at once: held one lock after the other, two orders could come to wait for each other.
            going = [use["coupon_id"] for use in read_uses(connection, order)]
            hold_coupons(connection, body.user_id, [*going, *body.coupon_nos])
            release_held(connection, now, order, "timeout", DEADLINE)
        elif order["fingerprint"] == body.fingerprint and was_closed(connection, body.user_id, order_no):
            # A lock that met the order's end, and is sent again: it holds nothing, now as before.
            return OrderChange(order, read_uses(connection, order))
    return place(connection, now, order, asked, operator)


def _re_entered(connection: Connection, order: Row, body: LockBody) -> OrderChange:
    if order["fingerprint"] != body.fingerprint:
        raise Conflict(
            "LOCKED_OTHERWISE",
            "the order holds a lock for another cart or other coupons: release it first",
            locked_until=order["locked_until"],
        )
    return OrderChange(order, read_uses(connection, order))
