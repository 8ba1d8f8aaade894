"""Putting free coupons on an order, all or none: to hold them until it is paid, or to redeem them at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from coupon_workers.coupons.move_sql import recorded
from coupon_workers.coupons.transition import FlowAction
from coupon_workers.errors import Overtaken
from coupon_workers.finance.ledger_sql import booked
from coupon_workers.orders.coupon_refusal import check_found, check_free, refuse
from coupon_workers.orders.coupon_rule import rule_of
from coupon_workers.orders.discount import Discounts, apply_coupons
from coupon_workers.orders.order import OrderBody
from coupon_workers.orders.order_change import AWAITED, OrderChange
from coupon_workers.orders.order_row import Row, hold_coupons
from coupon_workers.runtime.prepared_statement import PreparedStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What is asked: an order with coupons, and either how long it holds them or by which payment it uses them."""

    order_no: str
    order: OrderBody
    coupon_ids: Sequence[int]
    fingerprint: bytes
    locked_until: datetime | None = None
    payment_no: str | None = None
    paid_at: datetime | None = None


_COLUMNS = (
    "status, lock_no, fingerprint, currency, channel, lines, subtotal_minor, discount_minor, payable_minor, locked_at,"
    " locked_until, payment_no, paid_at, redeemed_at"
)
_VALUES = ", ".join(f":{column.strip()}" for column in _COLUMNS.split(","))
_EXCLUDED = ", ".join(f"excluded.{column.strip()}" for column in _COLUMNS.split(","))


def _statement(action: FlowAction, event: str, extra: str = "") -> str:
    """An order that was not there is inserted; one that was is moved only from the released lock that was read."""
    return f"""
    WITH placed AS (
        INSERT INTO coupon_order (user_id, order_no, {_COLUMNS}, created_at, updated_at)
        VALUES (:user_id, :order_no, {_VALUES}, :now, :now)
        ON CONFLICT (user_id, order_no) DO UPDATE
           SET ({_COLUMNS}, updated_at, released_at, release_reason) = ROW ({_EXCLUDED}, :now, NULL, NULL)
         WHERE coupon_order.status = 'released' AND coupon_order.lock_no = :lock_no - 1
        RETURNING 1
    ), moved AS (
        UPDATE coupon SET status = :status, order_no = :order_no, version = version + 1, updated_at = :now
         WHERE user_id = :user_id AND coupon_id = ANY(:coupon_ids) AND status = 'unused'
           AND valid_from <= :now AND :now < valid_to
        RETURNING user_id, coupon_id, template_id, version, 'unused' AS before_status, status, order_no
    ), used AS (
        INSERT INTO coupon_use (user_id, order_no, coupon_id, template_id, lock_no, state, position, discount_minor,
                                allocations)
        SELECT :user_id, :order_no, coupon_id, template_id, :lock_no, :status, position, discount_minor, allocations
          FROM jsonb_to_recordset(:uses)
            AS u(coupon_id bigint, template_id bigint, position smallint, discount_minor bigint, allocations jsonb)
        ON CONFLICT (user_id, order_no, coupon_id) DO UPDATE
           SET (lock_no, state, position, discount_minor, allocations) =
               ROW (excluded.lock_no, excluded.state, excluded.position, excluded.discount_minor, excluded.allocations)
        RETURNING coupon_id, template_id, discount_minor AS amount_minor
    ),{recorded(action, event)}{extra}
    SELECT (SELECT count(*) FROM placed) AS placed, (SELECT count(*) FROM moved) AS moved,{AWAITED}"""


_TYPES = {
    "user_id": "text",
    "order_no": "text",
    "status": "text",
    "lock_no": "integer",
    "fingerprint": "bytea",
    "currency": "text",
    "channel": "text",
    "lines": "jsonb",
    "subtotal_minor": "bigint",
    "discount_minor": "bigint",
    "payable_minor": "bigint",
    "locked_at": "timestamptz",
    "locked_until": "timestamptz",
    "payment_no": "text",
    "paid_at": "timestamptz",
    "redeemed_at": "timestamptz",
    "now": "timestamptz",
    "coupon_ids": "bigint[]",
    "uses": "jsonb",
    "operator": "text",
    "request_id": "text",
}

_LOCK = PreparedStatement("lock_coupons", _statement(FlowAction.LOCK, "coupon.locked"), **_TYPES)
_REDEEM = PreparedStatement(
    "redeem_coupons_directly",
    _statement(FlowAction.REDEEM, "coupon.redeemed", f", charged AS (SELECT * FROM used),{booked('redeem')}"),
    **_TYPES,
    reference="text",
)


def place(
    connection: Connection,
    now: datetime,
    previous: Row | None,
    asked: Placement,
    operator: str,
    held: Sequence[Row] | None = None,
) -> OrderChange:
    """Lock or redeem the coupons for the order; ``previous`` is the order's row, held, released or None. ``held``: the
    coupons, where they are held already.

    Raises ``NotFound`` ``COUPON_NOT_FOUND``, ``Conflict`` with the first refusal of a coupon, and ``Overtaken``.
    """
    if held is None:
        held = hold_coupons(connection, asked.order.user_id, asked.coupon_ids)
    coupons = check_found(asked.coupon_ids, held)
    check_free(coupons, asked.order_no)
    discounts = apply_coupons(asked.order, [rule_of(coupon, coupon) for coupon in coupons], now)
    if discounts.refused:
        raise refuse(discounts.refused)
    templates = {coupon["coupon_id"]: coupon["template_id"] for coupon in coupons}
    return _write(connection, now, previous, asked, discounts, templates, operator)


def _write(
    connection: Connection,
    now: datetime,
    previous: Row | None,
    asked: Placement,
    discounts: Discounts,
    templates: dict[int, int],
    operator: str,
) -> OrderChange:
    order = _order(now, previous, asked, discounts)
    uses: list[Row] = [
        {
            "coupon_id": applied.coupon_id,
            "template_id": templates[applied.coupon_id],
            "position": position,
            "discount_minor": applied.discount_minor,
            "allocations": [{"line_id": each.line_id, "amount": each.amount_minor} for each in applied.allocations],
        }
        for position, applied in enumerate(discounts.applied)
    ]
    statement = _LOCK if asked.payment_no is None else _REDEEM
    [written] = statement.rows(
        connection,
        order
        | {
            "lines": json.dumps(order["lines"]),
            "uses": json.dumps(uses),
            "coupon_ids": list(asked.coupon_ids),
            "operator": operator,
            "request_id": asked.payment_no,
            "reference": asked.payment_no,
            "now": now,
        },
    )
    if (written["placed"], written["moved"]) != (1, len(uses)):
        raise Overtaken
    return OrderChange(order, uses, written["awaited"])


def _order(now: datetime, previous: Row | None, asked: Placement, discounts: Discounts) -> dict[str, Any]:
    redeemed = asked.payment_no is not None
    return {
        "user_id": asked.order.user_id,
        "order_no": asked.order_no,
        "status": "redeemed" if redeemed else "locked",
        "lock_no": previous["lock_no"] + 1 if previous else 1,
        "fingerprint": asked.fingerprint,
        "currency": asked.order.currency,
        "channel": asked.order.channel,
        "lines": [line.model_dump() for line in asked.order.lines],
        "subtotal_minor": discounts.subtotal_minor,
        "discount_minor": discounts.discount_minor,
        "payable_minor": discounts.payable_minor,
        "locked_at": None if redeemed else now,
        "locked_until": asked.locked_until,
        "released_at": None,
        "payment_no": asked.payment_no,
        "paid_at": asked.paid_at,
        "redeemed_at": now if redeemed else None,
    }
