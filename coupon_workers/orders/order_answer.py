"""Orders as the order centre sees them (API.md, Orders). Made from what was frozen, so that it reads the same again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coupon_workers.orders.order_row import Row
from coupon_workers.runtime.clock import rfc3339

Answer = dict[str, Any]


def order_answer(order: Row, uses: Iterable[Row]) -> Answer:
    """The order with its coupons, what they take off, and what is to be paid."""
    return {
        "order_no": order["order_no"],
        "user_id": order["user_id"],
        "status": order["status"],
        "currency": order["currency"],
        "applied": [use_answer(use) for use in uses],
        "subtotal": order["subtotal_minor"],
        "discount": order["discount_minor"],
        "payable": order["payable_minor"],
        "locked_until": _instant(order["locked_until"]),
        "released_at": _instant(order["released_at"]),
        "payment_no": order["payment_no"],
        "paid_at": _instant(order["paid_at"]),
        "redeemed_at": _instant(order["redeemed_at"]),
    }


def use_answer(use: Row) -> Answer:
    """A coupon on an order, down to the lines."""
    return {
        "coupon_no": str(use["coupon_id"]),
        "discount": use["discount_minor"],
        "allocations": use["allocations"],
    }


def refund_answer(refund: Row) -> Answer:
    """A refund: what is paid back, how much discount is taken back with it, and where each coupon went."""
    return {
        "refund_no": refund["refund_no"],
        "order_no": refund["order_no"],
        "refund_amount": refund["refund_minor"],
        "discount_reversed": refund["discount_reversed_minor"],
        "lines": refund["returned"],
        "coupons": refund["coupons"],
        "at": rfc3339(refund["at"]),
    }


def _instant(value: Any) -> str | None:
    return None if value is None else rfc3339(value)
