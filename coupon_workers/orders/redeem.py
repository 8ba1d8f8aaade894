"""Redeeming the coupons of an order that has been paid (API.md, Orders; DESIGN 8)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from coupon_workers.coupons.move_sql import recorded
from coupon_workers.coupons.transition import CouponStatus, FlowAction
from coupon_workers.errors import Conflict, InvalidInput, NotFound, Overtaken
from coupon_workers.finance.ledger_sql import booked
from coupon_workers.orders.broken_order import broken_order, check_discounts
from coupon_workers.orders.order_change import AWAITED, OrderChange
from coupon_workers.orders.order_request import RedeemBody, fingerprint_of
from coupon_workers.orders.order_row import ORDER_COLUMNS, Row, hold_coupons, hold_order, read_uses
from coupon_workers.orders.placement import Placement, place
from coupon_workers.runtime.prepared_statement import PreparedStatement

CLOCKS_APART = timedelta(minutes=5)
"""How far ahead of ours the order centre's clock may be."""

# Each step reads what the one before it changed: the order is held first, then its coupons by their numbers.
_REDEEM = PreparedStatement(
    "redeem_coupons",
    f"""
    WITH paid AS (
        UPDATE coupon_order SET status = 'redeemed', payment_no = :payment_no, paid_at = :paid_at, redeemed_at = :now,
               updated_at = :now
         WHERE user_id = :user_id AND order_no = :order_no AND status = :order_status
           AND (:standing_at IS NULL OR locked_until > :standing_at)
        RETURNING {ORDER_COLUMNS}
    ), used AS (
        UPDATE coupon_use u SET state = 'redeemed'
          FROM paid
         WHERE u.user_id = :user_id AND u.order_no = :order_no AND u.lock_no = paid.lock_no AND u.state = :order_status
        RETURNING u.coupon_id, u.template_id, u.position, u.discount_minor AS use_discount_minor,
                  u.allocations
    ), still AS (
        SELECT c.coupon_id FROM used JOIN coupon c ON c.user_id = :user_id AND c.coupon_id = used.coupon_id
         ORDER BY c.coupon_id FOR NO KEY UPDATE OF c
    ), moved AS (
        UPDATE coupon c SET status = 'redeemed', order_no = :order_no, version = version + 1, updated_at = :now
          FROM still
         WHERE c.user_id = :user_id AND c.coupon_id = still.coupon_id AND c.status = :coupon_status
           AND c.order_no IS NOT DISTINCT FROM :holder
        RETURNING c.user_id, c.coupon_id, c.template_id, c.version, CAST(:coupon_status AS text) AS before_status,
                  c.status, c.order_no
    ), charged AS (
        SELECT coupon_id, template_id, use_discount_minor AS amount_minor FROM used
    ),{recorded(FlowAction.REDEEM, "coupon.redeemed")},{booked("redeem", "(SELECT currency FROM paid)")}
    SELECT {ORDER_COLUMNS}, coupon_id, template_id, position, use_discount_minor, allocations,
           (SELECT count(*) FROM moved) AS moved, {AWAITED}
      FROM paid LEFT JOIN used ON true ORDER BY position
    """,
    user_id="text",
    order_no="text",
    order_status="text",
    standing_at="timestamptz",
    coupon_status="text",
    holder="text",
    payment_no="text",
    paid_at="timestamptz",
    reference="text",
    operator="text",
    request_id="text",
    now="timestamptz",
)

_STANDING = "standing"
"""A locked order whose deadline has not passed."""


class _Payment(NamedTuple):
    order_no: str
    user_id: str
    payment_no: str
    paid_at: datetime


def redeem(connection: Connection, now: datetime, order_no: str, body: RedeemBody, operator: str) -> OrderChange:
    """Redeem the order's coupons by its payment; with an order and coupons in ``body``, without a lock before.

    The same payment again has the same answer. A lock that has run out is taken again when its coupons are free.
    Raises ``InvalidInput`` for a payment in the future; ``NotFound`` ``ORDER_NOT_FOUND``; ``Conflict``
    ``ALREADY_REDEEMED`` by another payment, ``ORDER_DIFFERS`` from the one that was locked, ``LOCK_EXPIRED`` when a
    coupon is gone, ``ORDER_BROKEN``; and for a direct redemption what ``place`` raises.
    """
    paid_at = body.paid_at or now
    if paid_at > now + CLOCKS_APART:
        raise InvalidInput([("paid_at", "It lies in the future")])
    payment = _Payment(order_no, body.user_id, body.payment_no, paid_at)
    if body.order is None and (change := _redeem(connection, now, payment, _STANDING, operator)):
        return change
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
    redeemed = _redeem(connection, now, payment, order["status"], operator)
    assert redeemed is not None  # it is held as it was read
    return redeemed


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


def _redeem(connection: Connection, now: datetime, payment: _Payment, status: str, operator: str) -> OrderChange | None:
    """Redeem the coupons of the order's last lock, if the order is ``status``; None, and nothing is done, if it is not.

    Raises ``Overtaken`` when the order, not held before, was locked anew while this waited for it.
    """
    held_as = "locked" if status == _STANDING else status
    released = held_as == "released"
    rows = _REDEEM.rows(
        connection,
        {
            "user_id": payment.user_id,
            "order_no": payment.order_no,
            "order_status": held_as,
            "standing_at": now if status == _STANDING else None,
            "coupon_status": "unused" if released else "locked",
            "holder": None if released else payment.order_no,
            "payment_no": payment.payment_no,
            "paid_at": payment.paid_at,
            "reference": payment.payment_no,
            "operator": operator,
            "request_id": payment.payment_no,
            "now": now,
        },
    )
    if not rows:
        return None
    order, uses = rows[0], [_use(row) for row in rows if row["coupon_id"] is not None]
    if not uses and any(use["state"] == held_as for use in read_uses(connection, order)):
        # The statement saw the uses as they were when it began, and the order as it was when its turn had come.
        raise Overtaken
    if not len(uses) == order["moved"] > 0:
        raise broken_order(payment.order_no)
    check_discounts(order, [use["discount_minor"] for use in uses])
    return OrderChange(order, uses, order["awaited"])


def _use(row: Row) -> Row:
    return {
        "coupon_id": row["coupon_id"],
        "discount_minor": row["use_discount_minor"],
        "allocations": row["allocations"],
    }
