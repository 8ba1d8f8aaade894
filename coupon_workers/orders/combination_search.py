"""Branch and bound over the coupons in their turn: each is taken or left, and what cannot win is cut off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from coupon_workers.orders.combination_field import CombinationField, Played
from coupon_workers.orders.discount import discount_of, take_off
from coupon_workers.orders.discount_ceiling import ceiling, coupons_needed
from coupon_workers.orders.divisible_ceiling import DivisibleCart


class Preference(NamedTuple):
    """Sorts combinations, the best first: the larger discount, then fewer coupons, then the earliest ends, then the
    lowest numbers."""

    less_discount: int
    coupons: int
    ages: tuple[tuple[datetime, int], ...]


class Node(NamedTuple):
    """A combination in the making: candidates before ``place`` are decided; ``left`` is what is left of each line."""

    place: int
    left: list[int]
    discount: int
    chosen: tuple[int, ...]
    used: frozenset[str]
    after_leaving: bool


@dataclass(slots=True)
class CombinationSearch:
    """The search of ``cart`` for what is preferred to ``best``, of ``most`` coupons at most."""

    cart: CombinationField
    best: Preference
    most: int
    nodes: int = 0
    complete: bool = False
    ceiling: int = 0
    divisible: DivisibleCart = field(init=False)

    def __post_init__(self) -> None:
        self.divisible = DivisibleCart.of(self.cart)

    @property
    def exact(self) -> bool:
        """Whether no combination takes more off."""
        return self.complete or -self.best.less_discount >= self.ceiling

    def offer(self, played: Played) -> None:
        """Take ``played`` for the best if it is preferred."""
        if (-played.discount, len(played.places)) <= self.best[:2] and played.places:
            self.best = min(self.best, Preference(-played.discount, len(played.places), self._ages(played.places)))

    def run(self, node_budget: int) -> None:
        """Visit up to ``node_budget`` nodes, in an order that hangs on nothing but the coupons and the cart."""
        cart = self.cart
        root = Node(0, list(cart.amounts), 0, (), frozenset(), True)
        self.ceiling = min(self._ceiling(root), self._largest_together())
        waiting = [root]
        while waiting and self.nodes < node_budget:
            self.nodes += 1
            node = self._next_decision(waiting.pop())
            if node is not None and not self._cut_off(node):
                waiting += self._branches(node)
        self.complete = not waiting

    def _ceiling(self, node: Node) -> int:
        """What the combinations from ``node`` on take off at most, all in all."""
        below = ceiling(self.cart, node.place, node.left, node.used)
        # The sharper ceiling is dearer. After a coupon was left it mostly decides, after one was taken it seldom does.
        if node.after_leaving and node.discount + below >= -self.best.less_discount:
            below = min(below, self.divisible.ceiling(node.place, node.left, node.used))
        return node.discount + below

    def _largest_together(self) -> int:
        """What so many coupons as may be used take off at most, each of the whole cart."""
        amounts = self.cart.amounts_of_scopes(self.cart.amounts)
        parts = [discount_of(each.rule, amounts[each.scope]) for each in self.cart.candidates]
        return sum(sorted(parts, reverse=True)[: self.most])

    def _next_decision(self, node: Node) -> Node | None:
        """``node`` at the next candidate that may be taken and takes something; None when there is none."""
        if len(node.chosen) == self.most:
            return None
        for place in range(node.place, len(self.cart.candidates)):
            candidate = self.cart.candidates[place]
            barred = candidate.rule.group in node.used or (candidate.twin and node.chosen[-1:] != (place - 1,))
            lines = self.cart.scopes[candidate.scope]
            if not barred and discount_of(candidate.rule, sum([node.left[line] for line in lines])):
                return node._replace(place=place)
        return None

    def _cut_off(self, node: Node) -> bool:
        """Whether nothing from ``node`` on can be preferred to the best."""
        at_most, target = self._ceiling(node), -self.best.less_discount
        return at_most < target or (at_most == target and self._cannot_tie(node, target - node.discount))

    def _cannot_tie(self, node: Node, discount: int) -> bool:
        """Whether what takes ``discount`` more from ``node`` on needs more coupons, or ones that end later."""
        needed = coupons_needed(self.cart, node.place, node.left, node.used, discount)
        count = len(node.chosen) + needed
        if count != self.best.coupons:
            return count > self.best.coupons
        open_candidates = (each for each in self.cart.candidates[node.place :] if each.rule.group not in node.used)
        rest = sorted(each.age for each in open_candidates)
        return tuple(sorted([*self._ages(node.chosen), *rest[:needed]])) >= self.best.ages

    def _branches(self, node: Node) -> list[Node]:
        """The candidate left, and taken: the last is visited first."""
        candidate = self.cart.candidates[node.place]
        left = list(node.left)
        discount = node.discount + sum(take_off(candidate.rule, self.cart.scopes[candidate.scope], left))
        chosen = (*node.chosen, node.place)
        self.offer(Played(discount, chosen))
        group = candidate.rule.group
        used = node.used if group is None else node.used | {group}
        leave = node._replace(place=node.place + 1, after_leaving=True)
        return [leave, Node(node.place + 1, left, discount, chosen, used, False)]

    def _ages(self, places: Iterable[int]) -> tuple[tuple[datetime, int], ...]:
        return tuple(sorted(self.cart.candidates[place].age for place in places))
