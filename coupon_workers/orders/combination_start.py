"""A good combination to begin the search with: the better it is, the more of the search is cut off."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from coupon_workers.orders.combination_field import CombinationField, Played
from coupon_workers.orders.discount import discount_of

NODES_PER_TRIAL = 12
"""One whole combination is tried for so many nodes of the search to come; it costs about four of them."""


def start_combination(field: CombinationField, trials: int, most: int) -> Played:
    """Every coupon without a group and one of each group: the one that takes most of the whole cart, or what takes
    more in its place; of a cart that is taken off whole, few large coupons. Never above ``most`` coupons. Tries
    ``trials`` combinations, or twice that."""
    amounts = field.amounts_of_scopes(field.amounts)
    parts = [discount_of(each.rule, amounts[each.scope]) for each in field.candidates]
    by_part = sorted(range(len(parts)), key=parts.__getitem__, reverse=True)
    best = _improved(field, _largest_of_groups(field, by_part, most), by_part, trials, most)
    return _thrifty(field, best, by_part, parts, trials) if best.discount == sum(field.amounts) else best


def _largest_of_groups(field: CombinationField, by_part: list[int], most: int) -> Played:
    groups: set[str] = set()
    chosen = []
    for place in by_part:
        group = field.candidates[place].rule.group
        if group not in groups:
            chosen.append(place)
        if group is not None:
            groups.add(group)
    return field.play(sorted(chosen[:most]))


def _improved(field: CombinationField, best: Played, by_part: list[int], trials: int, most: int) -> Played:
    """Swap coupons within their groups until no swap takes more off, or the trials are used up."""
    swaps = [place for place in by_part if field.candidates[place].rule.group and not field.candidates[place].twin]
    again = True
    while again:
        again = False
        for place in swaps:
            if place in best.places or not trials:
                continue
            group = field.candidates[place].rule.group
            others = [each for each in best.places if field.candidates[each].rule.group != group]
            if len(others) == most:
                continue
            trials -= 1
            swapped = field.play(sorted([*others, place]))
            if swapped.discount > best.discount:
                best, again = swapped, True
    return best


def _thrifty(field: CombinationField, best: Played, by_part: list[int], parts: list[int], trials: int) -> Played:
    """Of a cart that is taken off whole, the fewest of the largest coupons that do it as well."""
    chosen = [place for place in by_part if place in best.places]
    together = list(accumulate(parts[place] for place in chosen))
    least = bisect_left(together, best.discount) + 1
    for count in range(least, min(least + trials, len(chosen))):
        few = field.play(sorted(chosen[:count]))
        if few.discount == best.discount:
            return few
    return best
