"""How much could be taken off at most, were money divisible: slower than ``discount_ceiling``, and mostly sharper.

With divisible money a coupon leaves the same fraction of each of its lines. Less left before then means less left
after, line by line, so that taking every coupon without a group leaves the least. Two paths of coupons through the
same cart never move apart: what is left by one above the other, summed over lines, does not grow by a coupon that
both take. Whole units disturb this little, and by how much is known:

- rounding half up takes half a unit more than the exact percentage, at most;
- largest remainders round lines up by a quarter of a unit a line, in sum, at most (m of n lines go up, the larger
  remainders: what they gain is what the others lose, at most m(1 - r) and (n - m)r where r parts them).

So the ceiling is what the divisible row takes, a coupon of each group besides, and these quarters for every coupon
whose lines another coupon tells apart.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Self

from coupon_workers.orders.combination_field import Candidate, CombinationField, Lines
from coupon_workers.orders.discount import WHOLE_BP

_UNIT = 1024
"""Parts of a minor unit that are counted here; what is finer is cut off what is left, which only lifts the ceiling."""


@dataclass(frozen=True, slots=True)
class DivisibleCart:
    """``classes``: the lines that no scope tells apart; ``scopes``: the classes of each scope of the field;
    ``rounding``: what largest remainders lift the lines of each scope by, in parts of a unit."""

    field: CombinationField
    classes: tuple[Lines, ...]
    scopes: tuple[Lines, ...]
    rounding: tuple[int, ...]

    @classmethod
    def of(cls, field: CombinationField) -> Self:
        """The lines of ``field`` in classes."""
        members: dict[tuple[bool, ...], list[int]] = {}
        sets = [set(scope) for scope in field.scopes]
        for line in range(len(field.amounts)):
            members.setdefault(tuple(line in scope for scope in sets), []).append(line)
        scopes = tuple(
            tuple(place for place, held in enumerate(members) if held[scope]) for scope in range(len(field.scopes))
        )
        rounding = [
            len(lines) * _UNIT // 4 if len(classes) > 1 else 0
            for lines, classes in zip(field.scopes, scopes, strict=True)
        ]
        return cls(field, tuple(map(tuple, members.values())), scopes, tuple(rounding))

    def ceiling(self, place: int, left: list[int], used: Set[str]) -> int:
        """What the candidates from ``place`` on could take of ``left``, when the groups ``used`` have had their turn;
        minor units."""
        amounts = [sum([left[line] for line in lines]) * _UNIT for lines in self.classes]
        whole, beyond = sum(amounts), 0
        best: dict[str, int] = {}
        for candidate in self.field.candidates[place:]:
            group, classes = candidate.rule.group, self.scopes[candidate.scope]
            total = sum([amounts[each] for each in classes])
            if group in used or not total:
                continue
            discount = _at_most(candidate, total)
            if group is None:
                beyond += self.rounding[candidate.scope]
                for each in classes:
                    amounts[each] = amounts[each] * (total - discount) // total
            else:
                best[group] = max(discount + self.rounding[candidate.scope], best.get(group, 0))
        return (whole - sum(amounts) + sum(best.values()) + beyond) // _UNIT


def _at_most(candidate: Candidate, total: int) -> int:
    """What the coupon takes of ``total``, or a little more; both in parts of a unit."""
    rule = candidate.rule
    if rule.percent_off_bp is None:
        return min((rule.amount_minor or 0) * _UNIT, total)
    discount = min(total * rule.percent_off_bp // WHOLE_BP + _UNIT // 2 + 1, total)
    return discount if rule.max_discount_minor is None else min(discount, rule.max_discount_minor * _UNIT)
