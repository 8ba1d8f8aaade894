"""Whether a coupon may be used on an order at all, and on which of its lines (DESIGN 8)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from coupon_workers.orders.coupon_rule import CouponRule
from coupon_workers.orders.order import OrderBody
from coupon_workers.runtime.clock import rfc3339


class Refusal(StrEnum):
    """Why a coupon is not used on an order, in order of precedence: the first that applies is told."""

    CURRENCY_MISMATCH = "CURRENCY_MISMATCH"
    NOT_YET_VALID = "NOT_YET_VALID"
    EXPIRED = "EXPIRED"
    SCOPE_MISMATCH = "SCOPE_MISMATCH"
    THRESHOLD_NOT_MET = "THRESHOLD_NOT_MET"
    STACKING_CONFLICT = "STACKING_CONFLICT"
    NOTHING_TO_DISCOUNT = "NOTHING_TO_DISCOUNT"


@dataclass(frozen=True, slots=True)
class Refused:
    """A coupon that is not used. ``shortfall_minor`` is what the eligible amount lacks of the threshold."""

    coupon_id: int
    code: Refusal
    detail: str
    shortfall_minor: int | None = None


@dataclass(frozen=True, slots=True)
class Eligible:
    """The lines, by their positions in the order, that a coupon takes from; ``amount_minor`` is their list price."""

    lines: tuple[int, ...]
    amount_minor: int


def assess(rule: CouponRule, order: OrderBody, now: datetime) -> Eligible | Refused:
    """What of ``order`` the coupon applies to at ``now``, or why to nothing. Other coupons are not looked at."""
    if rule.currency != order.currency:
        return _refused(rule, Refusal.CURRENCY_MISMATCH, f"the coupon is in {rule.currency}, not in {order.currency}")
    if now < rule.valid_from:
        return _refused(rule, Refusal.NOT_YET_VALID, f"the coupon holds from {rfc3339(rule.valid_from)} on")
    if now >= rule.valid_to:
        return _refused(rule, Refusal.EXPIRED, f"the coupon held until {rfc3339(rule.valid_to)}")
    if rule.channels and order.channel not in rule.channels:
        return _refused(rule, Refusal.SCOPE_MISMATCH, "the coupon is for other channels")
    if rule.user_tags and rule.user_tags.isdisjoint(order.user_tags):
        return _refused(rule, Refusal.SCOPE_MISMATCH, "the coupon is for other users")
    return _eligible_lines(rule, order)


def _eligible_lines(rule: CouponRule, order: OrderBody) -> Eligible | Refused:
    positions = tuple(
        position
        for position, line in enumerate(order.lines)
        if rule.products.holds(line.product_id) and rule.categories.holds(line.category_id)
    )
    if not positions:
        return _refused(rule, Refusal.SCOPE_MISMATCH, "the coupon is for other products")
    amount = sum(order.lines[position].amount_minor for position in positions)
    if amount < rule.threshold_minor:
        shortfall = rule.threshold_minor - amount
        detail = f"the coupon needs {rule.threshold_minor} of what it is for; there is {amount}"
        return Refused(rule.coupon_id, Refusal.THRESHOLD_NOT_MET, detail, shortfall)
    if amount == 0:
        return _refused(rule, Refusal.NOTHING_TO_DISCOUNT, "what the coupon is for costs nothing")
    return Eligible(positions, amount)


def _refused(rule: CouponRule, code: Refusal, detail: str) -> Refused:
    return Refused(rule.coupon_id, code, detail)
