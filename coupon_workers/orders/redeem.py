"""Redeeming the coupons of an order that has been paid (API.md, Orders; DESIGN 8)."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from coupon_workers.coupons.move_sql import recorded
from coupon_workers.coupons.transition import CouponStatus, FlowAction
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.finance.ledger_sql import booked
from coupon_workers.orders.order_change import AWAITED, OrderChange
from coupon_workers.orders.order_request import RedeemBody, fingerprint_of
from coupon_workers.orders.order_row import Row, hold_coupons, hold_order, read_uses
from coupon_workers.orders.placement import Placement, place
from coupon_workers.runtime.prepared_statement import PreparedStatement

CLOCKS_APART = timedelta(minutes=5)
"""How far ahead of ours the order centre's clock may be."""

_REDEEM = PreparedStatement(
    "redeem_coupons",
    f"""
    WITH paid AS (
        UPDATE coupon_order SET status = 'redeemed', payment_no = :payment_no, paid_at = :paid_at, redeemed_at = :now,
               updated_at = :now
         WHERE user_id = :user_id AND order_no = :order_no AND lock_no = :lock_no AND status = :order_status
        RETURNING 1
    ), still AS (
        SELECT c.coupon_id FROM coupon_use u JOIN coupon c ON c.user_id = :user_id AND c.coupon_id = u.coupon_id
         WHERE u.user_id = :user_id AND u.order_no = :order_no AND u.lock_no = :lock_no
         ORDER BY c.coupon_id FOR NO KEY UPDATE OF c
    ), moved AS (
        UPDATE coupon c SET status = 'redeemed', order_no = :order_no, version = version + 1, updated_at = :now
          FROM still
         WHERE c.user_id = :user_id AND c.coupon_id = still.coupon_id AND c.status = :coupon_status
           AND c.order_no IS NOT DISTINCT FROM :holder
        RETURNING c.user_id, c.coupon_id, c.template_id, c.version, CAST(:coupon_status AS text) AS before_status,
                  c.status, c.order_no
    ), used AS (
        UPDATE coupon_use SET state = 'redeemed'
         WHERE user_id = :user_id AND order_no = :order_no AND lock_no = :lock_no AND state = :order_status
        RETURNING coupon_id, template_id, position, discount_minor, allocations
    ), charged AS (
        SELECT coupon_id, template_id, discount_minor AS amount_minor FROM used
    ),{recorded(FlowAction.REDEEM, "coupon.redeemed")},{booked("redeem")}
    SELECT coupon_id, template_id, position, discount_minor, allocations, (SELECT count(*) FROM paid) AS paid,
           (SELECT count(*) FROM moved) AS moved,{AWAITED}
      FROM used ORDER BY position
    """,
    user_id="text",
    order_no="text",
    lock_no="integer",
    order_status="text",
    coupon_status="text",
    holder="text",
    payment_no="text",
    paid_at="timestamptz",
    reference="text",
    currency="text",
    operator="text",
    request_id="text",
    now="timestamptz",
)


def redeem(connection: Connection, now: datetime, order_no: str, body: RedeemBody, operator: str) -> OrderChange:
    """Redeem the order's coupons by its payment; with an order and coupons in ``body``, without a lock before.

    The same payment again has the same answer. A lock that has run out is taken again when its coupons are free.
    Raises ``InvalidInput`` for a payment in the future; ``NotFound`` ``ORDER_NOT_FOUND``; ``Conflict``
    ``ALREADY_REDEEMED`` by another payment, ``ORDER_DIFFERS`` from the one that was locked, ``LOCK_EXPIRED`` when a
    coupon is gone; and for a direct redemption what ``place`` raises.
    """
    paid_at = body.paid_at or now
    if paid_at > now + CLOCKS_APART:
        raise InvalidInput([("paid_at", "It lies in the future")])
    order = hold_order(connection, body.user_id, order_no)
    if order is None:
        return _redeem_directly(connection, now, order_no, body, paid_at, operator)
    if order["status"] == "redeemed" and order["payment_no"] != body.payment_no:
        raise Conflict("ALREADY_REDEEMED", "the order was redeemed by another payment", payment_no=order["payment_no"])
    if body.order is not None and order["fingerprint"] != fingerprint_of(body.order, body.coupon_nos or []):
        raise Conflict("ORDER_DIFFERS", "another cart or other coupons were locked for this order")
    if order["status"] == "redeemed":
        return OrderChange(order, read_uses(connection, order))
    if order["status"] == "released" or order["locked_until"] <= now:
        # The coupons held when they were locked; a lock's word stands for a payment that came while it stood.
        _check_still_free(connection, order, order["locked_at"] if _in_time(order, paid_at) else now)
    return _redeem_locked(connection, now, order, body.payment_no, paid_at, operator)


def _redeem_directly(
    connection: Connection, now: datetime, order_no: str, body: RedeemBody, paid_at: datetime, operator: str
) -> OrderChange:
    if body.order is None:
        raise NotFound("ORDER_NOT_FOUND", "this user has no order of that number with coupons")
    coupon_ids = body.coupon_nos or []
    asked = Placement(
        order_no=order_no,
        order=body.order,
        coupon_ids=coupon_ids,
        fingerprint=fingerprint_of(body.order, coupon_ids),
        payment_no=body.payment_no,
        paid_at=paid_at,
    )
    return place(connection, now, None, asked, operator)


def _in_time(order: Row, paid_at: datetime) -> bool:
    """Whether the buyer paid while the lock stood, though we hear of it later."""
    ended = order["locked_until"] if order["released_at"] is None else min(order["locked_until"], order["released_at"])
    return bool(order["locked_at"] <= paid_at < ended)


def _check_still_free(connection: Connection, order: Row, judged_at: datetime) -> None:
    """The coupons of a lock that has run out are free, and hold at ``judged_at``; swept or not, it is the same.

    Raises ``Conflict`` ``LOCK_EXPIRED``.
    """
    coupon_ids = [use["coupon_id"] for use in read_uses(connection, order)]
    for coupon in hold_coupons(connection, order["user_id"], coupon_ids):
        own = coupon["order_no"] == order["order_no"]
        status = coupon["status"]
        if status == CouponStatus.LOCKED and own:
            status = CouponStatus.UNUSED
        if status == CouponStatus.UNUSED and not judged_at < coupon["valid_to"]:
            status = CouponStatus.EXPIRED
        if status != CouponStatus.UNUSED:
            evidence = {} if own or coupon["order_no"] is None else {"order_no": coupon["order_no"]}
            raise Conflict(
                "LOCK_EXPIRED",
                f"the lock has run out, and the coupon is {status}",
                coupon_no=str(coupon["coupon_id"]),
                coupon_status=str(status),
                **evidence,
            )


def _redeem_locked(
    connection: Connection, now: datetime, order: Row, payment_no: str, paid_at: datetime, operator: str
) -> OrderChange:
    """Redeem the coupons of the order's last lock, which it holds or has let go."""
    held = order["status"] == "locked"
    rows = _REDEEM.rows(
        connection,
        {
            "user_id": order["user_id"],
            "order_no": order["order_no"],
            "lock_no": order["lock_no"],
            "order_status": order["status"],
            "coupon_status": "locked" if held else "unused",
            "holder": order["order_no"] if held else None,
            "payment_no": payment_no,
            "paid_at": paid_at,
            "reference": payment_no,
            "currency": order["currency"],
            "operator": operator,
            "request_id": payment_no,
            "now": now,
        },
    )
    if not rows or rows[0]["paid"] != 1 or rows[0]["moved"] != len(rows):
        raise AssertionError(f"order {order['order_no']} does not hold its coupons")
    after = {"status": "redeemed", "payment_no": payment_no, "paid_at": paid_at, "redeemed_at": now}
    return OrderChange(dict(order) | after, rows, rows[0]["awaited"])
