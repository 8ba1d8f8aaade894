"""The coupons that may be combined on one order, made ready for the search: few lines, few scopes, plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from coupon_workers.orders.coupon_rule import CouponRule
from coupon_workers.orders.discount import take_off

Lines = tuple[int, ...]
Row = tuple[CouponRule, int, str | None, bool]
"""A candidate for the innermost loops: its rule, scope and group, and whether it is for every line."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A coupon in the search. ``scope`` is its place in ``CombinationField.scopes``; a ``twin`` differs from the
    candidate before it in nothing but its number and a later end."""

    rule: CouponRule
    scope: int
    twin: bool

    @property
    def age(self) -> tuple[datetime, int]:
        """Sorts by what is used first of equals: the earliest end, then the lower number."""
        return self.rule.valid_to, self.rule.coupon_id


class Played(NamedTuple):
    """A combination: its discount in minor units, and the places of the candidates that took something."""

    discount: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CombinationField:
    """``amounts`` of the lines that any candidate is for; ``candidates`` in their turn; the ``scopes`` they share.

    Lines that every candidate takes for one are one here. That changes no discount: a coupon's discount hangs on the
    sum of its lines alone, and how it falls on lines matters only where another coupon tells these lines apart.
    """

    amounts: Lines
    candidates: tuple[Candidate, ...]
    scopes: tuple[Lines, ...]
    rows: tuple[Row, ...] = field(init=False)

    def __post_init__(self) -> None:
        rows = (
            (each.rule, each.scope, each.rule.group, len(self.scopes[each.scope]) == len(self.amounts))
            for each in self.candidates
        )
        object.__setattr__(self, "rows", tuple(rows))

    def amounts_of_scopes(self, left: Sequence[int]) -> list[int]:
        """What is left of each scope, given what is left of each line."""
        return [sum([left[line] for line in lines]) for lines in self.scopes]

    def play(self, chosen: Iterable[int]) -> Played:
        """What the candidates at the places ``chosen``, ascending, take off together."""
        left, places = list(self.amounts), []
        for place in chosen:
            candidate = self.candidates[place]
            if any(take_off(candidate.rule, self.scopes[candidate.scope], left)):
                places.append(place)
        return Played(sum(self.amounts) - sum(left), tuple(places))


def combination_field(amounts: Sequence[int], eligible: Iterable[tuple[CouponRule, Lines]]) -> CombinationField:
    """The field of coupons with the lines they are for, of a cart with these ``amounts`` by line."""
    in_turn = sorted(eligible, key=lambda pair: pair[0].turn)
    scopes = sorted({lines for _, lines in in_turn})
    blocks = _blocks(len(amounts), scopes)
    block_of = {line: place for place, block in enumerate(blocks) for line in block}
    candidates = [
        Candidate(rule, scopes.index(lines), place > 0 and _same_but_for_the_number(rule, in_turn[place - 1][0]))
        for place, (rule, lines) in enumerate(in_turn)
    ]
    return CombinationField(
        tuple(sum(amounts[line] for line in block) for block in blocks),
        tuple(candidates),
        tuple(tuple(sorted({block_of[line] for line in lines})) for lines in scopes),
    )


def _blocks(line_count: int, scopes: Sequence[Lines]) -> list[Lines]:
    """The lines in their order, a scope's as one block where no other scope has any of them."""
    scopes_of: dict[int, list[Lines]] = {}
    for scope in scopes:
        for line in scope:
            scopes_of.setdefault(line, []).append(scope)
    lonely = {scope for scope in scopes if all(len(scopes_of[line]) == 1 for line in scope)}
    blocks = [(line,) for line in range(line_count) if line in scopes_of and scopes_of[line][0] not in lonely]
    return sorted([*blocks, *lonely])


def _same_but_for_the_number(rule: CouponRule, other: CouponRule) -> bool:
    return rule == replace(other, coupon_id=rule.coupon_id, valid_from=rule.valid_from, valid_to=rule.valid_to)
