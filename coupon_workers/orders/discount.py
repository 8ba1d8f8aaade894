"""What a set of coupons takes off an order, one after the other, down to each line (DESIGN 8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from coupon_workers.orders.coupon_rule import CouponRule
from coupon_workers.orders.eligibility import Refusal, Refused, assess
from coupon_workers.orders.money import allocate, half_up
from coupon_workers.orders.order import OrderBody

WHOLE_BP = 10_000
"""Basis points of everything: 100 %."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The share of a coupon's discount that falls on one line."""

    line_id: str
    amount_minor: int


@dataclass(frozen=True, slots=True)
class Applied:
    """A coupon that is used. ``allocations`` has every line it is for, in the order's order, also with a share of 0:
    they are what a later refund goes by."""

    coupon_id: int
    discount_minor: int
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class Discounts:
    """An order with its coupons: ``subtotal_minor`` less ``discount_minor`` is ``payable_minor``, which is never
    negative. ``applied`` is in the order of application, ``refused`` in the order in which the coupons were given."""

    applied: tuple[Applied, ...]
    refused: tuple[Refused, ...]
    subtotal_minor: int
    discount_minor: int
    payable_minor: int


def discount_of(rule: CouponRule, left_minor: int) -> int:
    """What the coupon takes off when ``left_minor`` is left of its lines: never more than that.

    A percentage is of the amount left, a half rounded up, then capped. It never falls as ``left_minor`` rises, and
    never rises faster: the search for the best combination rests on both.
    """
    if rule.percent_off_bp is None:
        return min(rule.amount_minor or 0, left_minor)
    discount = half_up(left_minor * rule.percent_off_bp, WHOLE_BP)
    return discount if rule.max_discount_minor is None else min(discount, rule.max_discount_minor)


def take_off(rule: CouponRule, lines: Sequence[int], left: list[int]) -> list[int]:
    """Apply the coupon to ``left``, the amounts left of all lines, which is changed; the shares of ``lines``."""
    amounts = [left[line] for line in lines]
    shares = allocate(discount_of(rule, sum(amounts)), amounts)
    for line, share in zip(lines, shares, strict=True):
        left[line] -= share
    return shares


def apply_coupons(order: OrderBody, rules: Iterable[CouponRule], now: datetime) -> Discounts:
    """Apply exactly these coupons, in their turn; those that cannot be used are refused, and take nothing.

    Of coupons that conflict, the one whose turn comes first is used. Raises ``ValueError`` for a coupon given twice.
    """
    given = list(rules)
    if len({rule.coupon_id for rule in given}) < len(given):
        raise ValueError("a coupon is given twice")
    left = [line.amount_minor for line in order.lines]
    used: list[CouponRule] = []
    applied: list[Applied] = []
    refused: dict[int, Refused] = {}
    for rule in sorted(given, key=lambda rule: rule.turn):
        result = _apply(order, rule, used, left, now)
        if isinstance(result, Refused):
            refused[rule.coupon_id] = result
        else:
            used.append(rule)
            applied.append(result)
    subtotal, payable = order.subtotal_minor, sum(left)
    in_given_order = tuple(refused[rule.coupon_id] for rule in given if rule.coupon_id in refused)
    return Discounts(tuple(applied), in_given_order, subtotal, subtotal - payable, payable)


def _apply(
    order: OrderBody, rule: CouponRule, used: Sequence[CouponRule], left: list[int], now: datetime
) -> Applied | Refused:
    eligible = assess(rule, order, now)
    if isinstance(eligible, Refused):
        return eligible
    if any(rule.conflicts(other) for other in used):
        return conflict(rule)
    if discount_of(rule, sum(left[line] for line in eligible.lines)) == 0:
        return nothing_left(rule)
    shares = take_off(rule, eligible.lines, left)
    allocations = zip((order.lines[line].line_id for line in eligible.lines), shares, strict=True)
    return Applied(rule.coupon_id, sum(shares), tuple(Allocation(*allocation) for allocation in allocations))


def conflict(rule: CouponRule) -> Refused:
    """The refusal of a coupon that may not be used beside those that are."""
    return Refused(rule.coupon_id, Refusal.STACKING_CONFLICT, "the coupon does not combine with those that are used")


def nothing_left(rule: CouponRule) -> Refused:
    """The refusal of a coupon that would take nothing off; it is not consumed."""
    return Refused(rule.coupon_id, Refusal.NOTHING_TO_DISCOUNT, "the coupon would take nothing more off this order")
