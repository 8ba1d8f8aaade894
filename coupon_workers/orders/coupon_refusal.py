"""Why coupons cannot be put on an order: one precise refusal, the first that applies, for the whole order (API.md)."""

from __future__ import annotations

from collections.abc import Sequence

from coupon_workers.coupons.transition import CouponStatus
from coupon_workers.errors import Conflict, NotFound, Overtaken
from coupon_workers.orders.eligibility import Refused
from coupon_workers.orders.order_row import Row

STOPPED = frozenset({"offline", "archived"})
"""Statuses of a template whose coupons no order may lock any more."""


def check_found(coupon_ids: Sequence[int], coupons: Sequence[Row]) -> list[Row]:
    """The coupons in the order in which they were asked for.

    Raises ``NotFound`` ``COUPON_NOT_FOUND``: another user's coupon is as unknown as one that does not exist.
    """
    found = {coupon["coupon_id"]: coupon for coupon in coupons}
    for coupon_id in coupon_ids:
        if coupon_id not in found:
            raise NotFound("COUPON_NOT_FOUND", f"this user has no coupon {coupon_id}")
    return [found[coupon_id] for coupon_id in coupon_ids]


def check_free(coupons: Sequence[Row], order_no: str) -> None:
    """Every coupon is free to be locked by the order.

    Raises ``Conflict``: ``LOCKED_BY_ORDER``, ``EXPIRED``, ``COUPON_NOT_AVAILABLE``; and ``Overtaken`` when this very
    order has come to hold one meanwhile.
    """
    for coupon in coupons:
        status, coupon_no = coupon["status"], str(coupon["coupon_id"])
        if status == CouponStatus.UNUSED:
            if coupon["template_status"] in STOPPED:
                detail = "the template of the coupon is offline"
                raise Conflict(
                    "COUPON_NOT_AVAILABLE",
                    detail,
                    coupon_no=coupon_no,
                    coupon_status=status,
                    template_status=coupon["template_status"],
                )
            continue
        if coupon["order_no"] == order_no:
            raise Overtaken
        if status == CouponStatus.LOCKED:
            detail = f"order {coupon['order_no']} holds the coupon"
            raise Conflict("LOCKED_BY_ORDER", detail, coupon_no=coupon_no, order_no=coupon["order_no"])
        code = "EXPIRED" if status == CouponStatus.EXPIRED else "COUPON_NOT_AVAILABLE"
        raise Conflict(code, f"the coupon is {status}", coupon_no=coupon_no, coupon_status=status)


def refuse(refused: Sequence[Refused]) -> Conflict:
    """The refusal of an order some of whose coupons do not apply: the first one's, with all of them as evidence."""
    first = refused[0]
    evidence: dict[str, object] = {"coupon_no": str(first.coupon_id)}
    if first.shortfall_minor is not None:
        evidence["shortfall"] = first.shortfall_minor
    return Conflict(str(first.code), first.detail, **evidence, rejected=[refused_answer(each) for each in refused])


def refused_answer(refused: Refused) -> dict[str, object]:
    """A coupon that is not used, as an answer shows it."""
    return {
        "coupon_no": str(refused.coupon_id),
        "code": str(refused.code),
        "detail": refused.detail,
        "shortfall": refused.shortfall_minor,
    }
