"""Reading an order: its lines, the coupons on it, and its refunds (API.md, Orders)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from coupon_workers.errors import NotFound
from coupon_workers.orders.order_answer import order_answer, refund_answer
from coupon_workers.orders.order_row import read_order, read_uses, rows_of
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.services import Services

_REFUNDS = text("SELECT * FROM coupon_refund WHERE user_id = :user_id AND order_no = :order_no ORDER BY refund_seq")
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


def read_whole_order(services: Services, user_id: str, order_no: str) -> dict[str, Any]:
    """The order with its lines, uses and refunds, all of one instant.

    Raises ``NotFound`` ``ORDER_NOT_FOUND``, also for another user's order, and ``StoreUnavailable``.
    """
    key = {"user_id": user_id, "order_no": order_no}
    with database_errors(), services.engine.connect() as connection, connection.begin():
        connection.exec_driver_sql(_SNAPSHOT)
        order = read_order(connection, user_id, order_no)
        if order is None:
            raise NotFound("ORDER_NOT_FOUND", "this user has no order of that number with coupons")
        uses = read_uses(connection, order)
        refunds = rows_of(connection.execute(_REFUNDS, key))
    states = {
        str(use["coupon_id"]): {"state": use["state"], "discount_reversed": use["reversed_minor"]} for use in uses
    }
    answer = order_answer(order, uses)
    return answer | {
        "applied": [applied | states[applied["coupon_no"]] for applied in answer["applied"]],
        "channel": order["channel"],
        "lines": order["lines"],
        "release_reason": order["release_reason"],
        "refunded": order["refunded_minor"],
        "refunds": [refund_answer(refund) for refund in refunds],
    }
