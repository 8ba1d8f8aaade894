"""A quote: what coupons would take off an order, now. Stores nothing, holds nothing (API.md, Orders)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.coupons.transition import CouponStatus
from coupon_workers.orders.best_combination import best_combination
from coupon_workers.orders.coupon_refusal import STOPPED, check_found, refused_answer
from coupon_workers.orders.coupon_rule import rule_of
from coupon_workers.orders.discount import Discounts, apply_coupons
from coupon_workers.orders.order_request import QuoteBody
from coupon_workers.orders.order_row import COUPON_WITH_RULE, Row, read_coupons

MOST_TRIED = 200
"""Coupons of a wallet that are tried: those that end first."""

_USABLE = text(
    f"""{COUPON_WITH_RULE}
     WHERE c.user_id = :user_id AND c.status = 'unused' AND c.valid_to > :now AND t.currency = :currency
       AND t.status NOT IN ('offline', 'archived')
     ORDER BY c.valid_to, c.coupon_id LIMIT :most"""
)

Answer = dict[str, Any]


def quote(connection: Connection, now: datetime, body: QuoteBody) -> Answer:
    """The coupons named, or the best allowed combination of the wallet; ``exact`` says whether none is better.

    Raises ``NotFound`` ``COUPON_NOT_FOUND`` for a coupon that is not the user's.
    """
    if body.coupon_nos is not None:
        return _named(connection, now, body, body.coupon_nos)
    arguments = {"user_id": body.user_id, "now": now, "currency": body.currency, "most": MOST_TRIED}
    wallet = connection.execute(_USABLE, arguments).mappings()
    best = best_combination(body, [rule_of(coupon, coupon) for coupon in map(dict, wallet)], now)
    refused = [refused_answer(each) for each in best.discounts.refused]
    return _answer(best.discounts, refused, exact=best.exact)


def _named(connection: Connection, now: datetime, body: QuoteBody, coupon_ids: list[int]) -> Answer:
    coupons = check_found(coupon_ids, read_coupons(connection, body.user_id, coupon_ids))
    unfree = {coupon["coupon_id"]: _unfree(coupon) for coupon in coupons if not _free(coupon)}
    rules = [rule_of(coupon, coupon) for coupon in coupons if coupon["coupon_id"] not in unfree]
    discounts = apply_coupons(body, rules, now)
    refused = unfree | {each.coupon_id: refused_answer(each) for each in discounts.refused}
    return _answer(discounts, [refused[coupon_id] for coupon_id in coupon_ids if coupon_id in refused], exact=True)


def _free(coupon: Row) -> bool:
    return coupon["status"] == CouponStatus.UNUSED and coupon["template_status"] not in STOPPED


def _unfree(coupon: Row) -> dict[str, object]:
    status = coupon["status"]
    code, detail = "COUPON_NOT_AVAILABLE", f"the coupon is {status}"
    if status == CouponStatus.LOCKED:
        code, detail = "LOCKED_BY_ORDER", f"order {coupon['order_no']} holds the coupon"
    elif status == CouponStatus.EXPIRED:
        code = "EXPIRED"
    elif status == CouponStatus.UNUSED:
        detail = "the template of the coupon is offline"
    return {"coupon_no": str(coupon["coupon_id"]), "code": code, "detail": detail, "shortfall": None}


def _answer(discounts: Discounts, refused: list[dict[str, object]], *, exact: bool) -> Answer:
    return {
        "applied": [
            {
                "coupon_no": str(applied.coupon_id),
                "discount": applied.discount_minor,
                "allocations": [{"line_id": each.line_id, "amount": each.amount_minor} for each in applied.allocations],
            }
            for applied in discounts.applied
        ],
        "rejected": refused,
        "subtotal": discounts.subtotal_minor,
        "discount": discounts.discount_minor,
        "payable": discounts.payable_minor,
        "exact": exact,
    }
