"""The best allowed combination of a wallet's coupons for one order: what a quote answers when it names none.

**What is best**: the largest discount; of equals the one with fewer coupons, then with the earliest ends, then with
the lowest coupon numbers.

**How many**: no more than an order may name, ``MAX_COUPONS``: what is answered can be locked.

**How it is found**: an exclusive coupon by itself; the others by branch and bound in their turn, from a good start
(``combination_start``), with two ceilings that cut off what cannot win (``discount_ceiling``, ``divisible_ceiling``).
Whatever is found is computed by the engine itself, line by line, to the last unit.

**When it is exact**: when the search ends within its node budget (``complete``: first of all by the order above), or
when what was found reaches the ceiling of the whole cart, as a cart that becomes free does (``exact``: nothing takes
more off). Up to seven applicable coupons on thirty lines always end within the budget; so do nine in ten wallets of 50
coupons, as the tests make them. Where percentages of many groups and scopes overlap, or a cart is nearly free by many
ways, the budget may run out: then the best combination met is answered, and says so. The budget counts nodes and no
time: the same wallet and cart have the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from coupon_workers.orders.combination_field import CombinationField, combination_field
from coupon_workers.orders.combination_search import CombinationSearch, Preference
from coupon_workers.orders.combination_start import NODES_PER_TRIAL, start_combination
from coupon_workers.orders.coupon_rule import CouponRule
from coupon_workers.orders.discount import Discounts, apply_coupons, conflict, discount_of, nothing_left
from coupon_workers.orders.eligibility import Eligible, Refused, assess
from coupon_workers.orders.order import MAX_COUPONS, OrderBody

WORK = 10_000
"""Nodes times the coupons and lines that each looks through: ten milliseconds or so. 123 nodes for 50 coupons on 30
lines; at least 2**8 - 1, which search seven coupons whole, for seven on 30."""
_LEAST_NODES = 16


@dataclass(frozen=True, slots=True)
class Combination:
    """The best combination met. ``discounts.refused`` has every other coupon of the wallet with its reason.

    ``exact``: no allowed combination takes more off. ``complete``: nor is any of equal discount preferred. ``nodes``:
    how many nodes the search visited.
    """

    discounts: Discounts
    exact: bool
    complete: bool
    nodes: int


def best_combination(
    order: OrderBody, wallet: Sequence[CouponRule], now: datetime, node_budget: int | None = None
) -> Combination:
    """The best combination of ``wallet`` for ``order`` at ``now``.

    Visits ``node_budget`` nodes at most, or as many as ``WORK`` allows. Raises ``ValueError`` for a coupon given twice.
    """
    if len({rule.coupon_id for rule in wallet}) < len(wallet):
        raise ValueError("a coupon is given twice")
    assessed = [(rule, assess(rule, order, now)) for rule in wallet]
    eligible = [
        (rule, found)
        for rule, found in assessed
        if isinstance(found, Eligible) and discount_of(rule, found.amount_minor)
    ]
    alone = min((_alone(rule, found) for rule, found in eligible if rule.exclusive), default=None)
    search = CombinationSearch(
        combination_field(
            [line.amount_minor for line in order.lines],
            [(rule, found.lines) for rule, found in eligible if not rule.exclusive],
        ),
        best=alone or Preference(0, 0, ()),
        most=MAX_COUPONS,
    )
    nodes = node_budget or _nodes_for(search.cart)
    search.offer(start_combination(search.cart, nodes // NODES_PER_TRIAL, MAX_COUPONS))
    search.run(nodes)
    chosen = {number for _, number in search.best.ages}
    used = apply_coupons(order, [rule for rule in wallet if rule.coupon_id in chosen], now)
    return Combination(_with_the_others(used, assessed, chosen), search.exact, search.complete, search.nodes)


def _alone(rule: CouponRule, eligible: Eligible) -> Preference:
    return Preference(-discount_of(rule, eligible.amount_minor), 1, ((rule.valid_to, rule.coupon_id),))


def _nodes_for(cart: CombinationField) -> int:
    return max(_LEAST_NODES, WORK // (len(cart.candidates) + len(cart.amounts) + 1))


def _with_the_others(
    used: Discounts, assessed: Sequence[tuple[CouponRule, Eligible | Refused]], chosen: set[int]
) -> Discounts:
    """``used``, with a refusal for each coupon of the wallet that is not among the ``chosen``."""
    rules = [rule for rule, _ in assessed if rule.coupon_id in chosen]
    refused = []
    for rule, found in assessed:
        if rule.coupon_id in chosen:
            continue
        if isinstance(found, Refused):
            refused.append(found)
        else:
            barred = len(rules) == MAX_COUPONS or any(map(rule.conflicts, rules))
            refused.append(conflict(rule) if barred else nothing_left(rule))
    return replace(used, refused=tuple(refused))
