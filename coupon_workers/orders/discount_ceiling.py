"""How much the coupons that are still undecided could take off at most: what cuts the search short.

All of it rests on two properties of ``discount_of``: less left never makes a discount larger, nor the rest that
remains afterwards larger. And whatever is chosen, the amounts left of lines only fall. So

- a coupon never takes more than it would now;
- of coupons with the same lines, taking all of them leaves the least, whatever others take in between;
- in a row of coupons on the whole cart, the same holds when the others are counted with the most they could take.

Of a group one coupon is taken: its largest part is counted on top of the coupons without a group. Every line here is
an integer that holds to the last unit, whatever way discounts are rounded and fall on lines.
"""

from __future__ import annotations

from collections.abc import Set

from coupon_workers.orders.combination_field import CombinationField
from coupon_workers.orders.discount import discount_of


def ceiling(field: CombinationField, place: int, left: list[int], used: Set[str]) -> int:
    """What the candidates from ``place`` on could take of ``left``, when the groups ``used`` have had their turn."""
    now = field.amounts_of_scopes(left)
    own = list(now)  # of each scope, all of its own taken in a row
    whole = least = sum(left)  # of the whole cart, all taken in a row
    best_of_own: dict[str, int] = {}
    best_in_row: dict[str, int] = {}
    for rule, scope, group, everywhere in field.rows[place:]:
        if group in used:
            continue
        in_row = discount_of(rule, least if everywhere else now[scope])
        in_row = min(in_row, least)
        of_own = discount_of(rule, own[scope])
        if group is None:
            own[scope] -= of_own
            least -= in_row
        else:
            best_of_own[group] = max(of_own, best_of_own.get(group, 0))
            best_in_row[group] = max(in_row, best_in_row.get(group, 0))
    row = whole - least + sum(best_in_row.values())
    scopes = sum(now) - sum(own) + sum(best_of_own.values())
    return min(row, scopes, whole)


def coupons_needed(field: CombinationField, place: int, left: list[int], used: Set[str], discount: int) -> int:
    """The least number of candidates from ``place`` on that might take ``discount`` of ``left`` together."""
    now = field.amounts_of_scopes(left)
    parts: list[int] = []
    best: dict[str, int] = {}
    for rule, scope, group, _ in field.rows[place:]:
        if group is None:
            parts.append(discount_of(rule, now[scope]))
        elif group not in used:
            best[group] = max(discount_of(rule, now[scope]), best.get(group, 0))
    needed = 0
    for part in sorted([*parts, *best.values()], reverse=True):
        if discount <= 0:
            break
        discount -= part
        needed += 1
    return needed
