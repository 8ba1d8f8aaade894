"""A cart that takes the best coupons, holds them, pays and cancels: as a storefront's backend would."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from flask import redirect, request, url_for

from coupon_workers.errors import InvalidInput
from coupon_workers.orders import order_desk as desk
from coupon_workers.orders.order_reading import read_whole_order
from coupon_workers.orders.order_request import LockBody, QuoteBody, RedeemBody, ReleaseBody
from coupon_workers.wallet.wallet import find_coupon
from web.console.language import gettext
from web.context import services
from web.shop.blueprint import page, shop
from web.shop.goods import CURRENCY, GOODS, order_of, pieces_of
from web.shop.returning import OPERATOR, pieces_returned
from web.shop.visitor import for_visitors, user


@shop.get("/cart")
@for_visitors
def cart() -> Any:
    """What it costs with the best coupons of the wallet. Nothing is held yet."""
    pieces = pieces_of(request.args)
    if not pieces:
        return redirect(url_for("shop.front", _anchor="goods"), 303)
    quote = desk.quote_order(services(), QuoteBody.model_validate(order_of(user(), pieces)))
    return page(
        "cart.html",
        quote=quote,
        coupon_names=_names_of(quote["applied"]),
        pieces=pieces,
        goods=GOODS,
        currency=CURRENCY,
        order_no=f"shop-{uuid4().hex}",
    )


@shop.post("/orders")
@for_visitors
def place() -> Any:
    """Hold the coupons for the order: all or none. Sent twice, it is one order."""
    order_no, pieces = request.form.get("order_no", ""), pieces_of(request.form)
    coupon_nos = request.form.getlist("coupon_no")
    if not pieces or not coupon_nos or not order_no.startswith("shop-") or len(order_no) > 64:
        raise InvalidInput([("", gettext("An order here needs goods and a coupon."))])
    try:
        body = LockBody.model_validate(order_of(user(), pieces) | {"coupon_nos": coupon_nos})
    except ValueError:
        raise InvalidInput([("", gettext("An order here needs goods and a coupon."))]) from None
    desk.lock_order(services(), order_no, body, OPERATOR)
    return redirect(url_for("shop.order", order_no=order_no), 303)


@shop.get("/orders/<order_no>")
@for_visitors
def order(order_no: str) -> Any:
    """How it stands, and what may be done with it."""
    found = read_whole_order(services(), user(), order_no)
    returned = pieces_returned(found)
    return page(
        "order.html",
        order=found,
        returned=returned,
        left=sum(line["quantity"] for line in found["lines"]) - returned.total(),
        goods={good.product_id: good for good in GOODS},
        coupon_names=_names_of(found["applied"]),
    )


@shop.post("/orders/<order_no>/pay")
@for_visitors
def pay(order_no: str) -> Any:
    """Paid: its coupons are used up."""
    body = RedeemBody.model_validate({"user_id": user(), "payment_no": f"pay-{order_no}"})
    desk.redeem_order(services(), order_no, body, OPERATOR)
    return redirect(url_for("shop.order", order_no=order_no), 303)


@shop.post("/orders/<order_no>/cancel")
@for_visitors
def cancel(order_no: str) -> Any:
    """Not wanted any more: its coupons come back."""
    desk.release_order(
        services(), order_no, ReleaseBody.model_validate({"user_id": user(), "reason": "buyer"}), OPERATOR
    )
    return redirect(url_for("shop.order", order_no=order_no), 303)


def _names_of(applied: list[dict[str, Any]]) -> dict[str, str]:
    """The template's name of each coupon that is applied, by the coupon's number."""
    found = [find_coupon(services(), user(), int(each["coupon_no"])) for each in applied]
    return {coupon["coupon_no"]: coupon["template_name"] for coupon in found if coupon is not None}
