"""Sending goods back: a piece of a line, or all that is left of the order."""

from __future__ import annotations

from collections import Counter
from typing import Any

from flask import redirect, request, url_for

from coupon_workers.errors import InvalidInput
from coupon_workers.orders import order_desk as desk
from coupon_workers.orders.order_request import RefundBody
from web.console.language import gettext
from web.context import services
from web.shop.blueprint import shop
from web.shop.goods import GOODS, MOST_PIECES
from web.shop.visitor import for_visitors, user

OPERATOR = "shop"


def pieces_returned(order: dict[str, Any]) -> Counter[str]:
    """How many pieces of each line came back, of an order with its refunds."""
    returned: Counter[str] = Counter()
    for refund in order["refunds"]:
        for line in refund["lines"]:
            returned[line["line_id"]] += line["quantity"]
    return returned


@shop.post("/orders/<order_no>/refund")
@for_visitors
def refund(order_no: str) -> Any:
    """All that is left comes back; its template says whether a coupon does."""
    return _send_back(order_no, f"refund-{order_no}", full=True)


@shop.post("/orders/<order_no>/refund/one")
@for_visitors
def refund_one(order_no: str) -> Any:
    """One piece of a line. The form says the how manieth of the line it is: sent twice, it is one refund."""
    line_id, piece = request.form.get("line_id", ""), request.form.get("piece", "")
    known = line_id in {good.product_id for good in GOODS}
    if not known or piece not in map(str, range(1, MOST_PIECES + 1)):
        raise InvalidInput([("", gettext("This page is from an earlier session. Load it again."))])
    return _send_back(order_no, f"refund-{order_no}-{line_id}-{piece}", lines=[{"line_id": line_id, "quantity": 1}])


def _send_back(order_no: str, refund_no: str, **what: Any) -> Any:
    try:
        body = RefundBody.model_validate({"user_id": user(), "refund_no": refund_no, **what})
    except ValueError:
        raise InvalidInput([("", gettext("You have no such order."))]) from None
    desk.refund_order(services(), order_no, body, OPERATOR)
    return redirect(url_for("shop.order", order_no=order_no), 303)
