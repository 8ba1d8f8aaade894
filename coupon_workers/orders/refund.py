"""Refunds of an order that was paid with coupons: exact to the last unit, each once (DESIGN 3.7, 8)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.coupons.move_sql import recorded
from coupon_workers.coupons.transition import FlowAction
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.finance.ledger_sql import booked
from coupon_workers.orders.broken_order import broken_order, check_discounts
from coupon_workers.orders.coupon_return import CouponReturn, coupon_return
from coupon_workers.orders.discount import Allocation
from coupon_workers.orders.order_request import RefundBody, digest
from coupon_workers.orders.order_row import Row, hold_coupons, hold_order, read_uses, row_of
from coupon_workers.orders.refund_split import Refund, RefundBook, SoldLine, UsedCoupon
from coupon_workers.templates.terms import RefundRule

_STORED = text("SELECT * FROM coupon_refund WHERE user_id = :user_id AND refund_no = :refund_no")
_RETURNED = text(
    "SELECT returned FROM coupon_refund WHERE user_id = :user_id AND order_no = :order_no ORDER BY refund_seq"
)

_REFUND = text(
    f"""
    WITH refunded AS (
        INSERT INTO coupon_refund (user_id, refund_no, order_no, refund_seq, fingerprint, refund_minor,
                                   discount_reversed_minor, returned, coupons, at)
        VALUES (:user_id, :refund_no, :order_no, :refund_seq, :fingerprint, :refund_minor, :discount_reversed_minor,
                :returned, :coupons, :now)
        RETURNING 1
    ), counted AS (
        UPDATE coupon_order
           SET refunded_minor = refunded_minor + :refund_minor, refund_count = refund_count + 1, updated_at = :now,
               fully_returned_at = CASE WHEN :everything_returned THEN CAST(:now AS timestamptz) END
         WHERE user_id = :user_id AND order_no = :order_no AND status = 'redeemed' AND refund_count = :refund_seq - 1
        RETURNING 1
    ), part AS (
        SELECT * FROM jsonb_to_recordset(CAST(:parts AS jsonb))
            AS p(coupon_id bigint, template_id bigint, reversed_minor bigint, status text, valid_to timestamptz)
    ), used AS (
        UPDATE coupon_use u
           SET reversed_minor = u.reversed_minor + part.reversed_minor,
               state = CASE WHEN part.status IS NULL THEN u.state ELSE 'returned' END
          FROM part
         WHERE u.user_id = :user_id AND u.order_no = :order_no AND u.coupon_id = part.coupon_id AND u.state = 'redeemed'
        RETURNING 1
    ), moved AS (
        UPDATE coupon c
           SET status = part.status, valid_to = part.valid_to, order_no = NULL, version = c.version + 1,
               updated_at = :now
          FROM part
         WHERE part.status IS NOT NULL AND c.user_id = :user_id AND c.coupon_id = part.coupon_id
           AND c.status = 'redeemed' AND c.order_no = :order_no
        RETURNING c.user_id, c.coupon_id, c.template_id, c.version, 'redeemed' AS before_status, c.status,
                  CAST(:order_no AS text) AS order_no
    ), charged AS (
        SELECT coupon_id, template_id, reversed_minor AS amount_minor FROM part
    ),{recorded(FlowAction.REFUND, "coupon.returned")},{booked("refund")}
    SELECT (SELECT count(*) FROM counted) AS counted, (SELECT count(*) FROM used) AS used,
           (SELECT count(*) FROM moved) AS moved
    """
)


def refund(connection: Connection, now: datetime, order_no: str, body: RefundBody, operator: str) -> Row:
    """Return what ``body`` names: the row of ``coupon_refund``. The same refund again has the same answer.

    Raises ``NotFound`` ``ORDER_NOT_FOUND``; ``Conflict`` ``NOT_REDEEMED``, ``NOTHING_LEFT``, ``ORDER_BROKEN``;
    ``InvalidInput`` for a line or a quantity that is not there to return, and for a refund number that belongs to
    another refund.
    """
    fingerprint = digest({"order_no": order_no, **body.model_dump(mode="json", exclude={"user_id", "refund_no"})})
    order = hold_order(connection, body.user_id, order_no)
    if order is None:
        raise NotFound("ORDER_NOT_FOUND", "this user has no order of that number with coupons")
    stored = connection.execute(_STORED, {"user_id": body.user_id, "refund_no": body.refund_no}).mappings().first()
    if stored is not None:
        row = row_of(stored)
        if row["fingerprint"] != fingerprint:
            raise InvalidInput([("refund_no", "belongs to another refund")])
        return row
    if order["status"] != "redeemed":
        raise Conflict("NOT_REDEEMED", f"the order is {order['status']}, not redeemed", order_status=order["status"])
    return _refund(connection, now, order, body, fingerprint, operator)


def _refund(
    connection: Connection, now: datetime, order: Row, body: RefundBody, fingerprint: bytes, operator: str
) -> Row:
    uses = read_uses(connection, order)
    coupons = {row["coupon_id"]: row for row in hold_coupons(connection, body.user_id, [u["coupon_id"] for u in uses])}
    check_discounts(order, [use["discount_minor"] for use in uses if use["coupon_id"] in coupons])
    book = _book(connection, order, uses, coupons)
    asked = None if body.full else [(line.line_id, line.quantity) for line in body.lines or ()]
    result, _ = book.refund(asked)
    returns = {coupon_id: _return(coupons[coupon_id], result, now) for coupon_id in (use["coupon_id"] for use in uses)}
    row = _row(now, order, body.refund_no, fingerprint, result, uses, returns)
    _write(connection, now, row, order, result, uses, returns, operator)
    return row


def _book(connection: Connection, order: Row, uses: list[Row], coupons: dict[int, Row]) -> RefundBook:
    """What is left to return, after the refunds that were made."""
    lines = [SoldLine(line["line_id"], line["unit_price"], line["quantity"]) for line in order["lines"]]
    used = [
        UsedCoupon(
            use["coupon_id"],
            tuple(Allocation(each["line_id"], each["amount"]) for each in use["allocations"]),
            coupons[use["coupon_id"]]["threshold_minor"],
            _rule(coupons[use["coupon_id"]]).threshold == "recheck",
        )
        for use in uses
    ]
    book = RefundBook.of(lines, used)
    key = {"user_id": order["user_id"], "order_no": order["order_no"]}
    for returned in connection.scalars(_RETURNED, key):
        _, book = book.refund([(line["line_id"], line["quantity"]) for line in returned])
    return book


def _rule(coupon: Row) -> RefundRule:
    return RefundRule.model_validate(coupon["refund"])


def _return(coupon: Row, refund: Refund, now: datetime) -> CouponReturn | None:
    return coupon_return(
        _rule(coupon),
        everything_returned=refund.everything_returned,
        valid_to=coupon["valid_to"],
        now=now,
        timezone=coupon["timezone"],
    )


def _row(
    now: datetime,
    order: Row,
    refund_no: str,
    fingerprint: bytes,
    refund: Refund,
    uses: list[Row],
    returns: dict[int, CouponReturn | None],
) -> dict[str, Any]:
    return {
        "user_id": order["user_id"],
        "refund_no": refund_no,
        "order_no": order["order_no"],
        "refund_seq": order["refund_count"] + 1,
        "fingerprint": fingerprint,
        "refund_minor": refund.amount_minor,
        "discount_reversed_minor": refund.discount_reversed_minor,
        "returned": [{"line_id": line.line_id, "quantity": line.quantity} for line in refund.lines if line.quantity],
        "coupons": [
            {
                "coupon_no": str(use["coupon_id"]),
                "status": str(back.status) if (back := returns[use["coupon_id"]]) else "redeemed",
                "discount_reversed": refund.by_coupon[use["coupon_id"]],
            }
            for use in uses
        ],
        "at": now,
    }


def _write(
    connection: Connection,
    now: datetime,
    row: dict[str, Any],
    order: Row,
    refund: Refund,
    uses: list[Row],
    returns: dict[int, CouponReturn | None],
    operator: str,
) -> None:
    parts = [
        {
            "coupon_id": use["coupon_id"],
            "template_id": use["template_id"],
            "reversed_minor": refund.by_coupon[use["coupon_id"]],
            "status": str(back.status) if (back := returns[use["coupon_id"]]) else None,
            "valid_to": back.valid_to.isoformat() if back else None,
        }
        for use in uses
    ]
    written = connection.execute(
        _REFUND,
        row
        | {
            "returned": json.dumps(row["returned"]),
            "coupons": json.dumps(row["coupons"]),
            "parts": json.dumps(parts),
            "everything_returned": refund.everything_returned,
            "reference": row["refund_no"],
            "currency": order["currency"],
            "operator": operator,
            "request_id": row["refund_no"],
            "now": now,
        },
    ).one()
    expected = (1, len(parts), sum(part["status"] is not None for part in parts))
    if (written.counted, written.used, written.moved) != expected:
        raise broken_order(order["order_no"])
