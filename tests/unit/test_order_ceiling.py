"""The ceilings of the search: no combination ever takes more off, and they are sharp where it matters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coupon_workers.orders.combination_field import CombinationField, Played, combination_field
from coupon_workers.orders.coupon_rule import CouponRule
from coupon_workers.orders.discount import apply_coupons, take_off
from coupon_workers.orders.discount_ceiling import ceiling, coupons_needed
from coupon_workers.orders.divisible_ceiling import DivisibleCart
from coupon_workers.orders.eligibility import Eligible, assess
from coupon_workers.orders.order import OrderBody
from tests.support.shopping import NOW, carts, coupon, ids, order_of, wallets


@dataclass(frozen=True)
class Midway:
    """A search somewhere on its way: candidates before ``place`` are decided."""

    field: CombinationField
    place: int
    left: list[int]
    used: frozenset[str]

    def endings(self) -> list[Played]:
        """Every allowed combination of the candidates that are left, with what it takes."""
        places = range(self.place, len(self.field.candidates))
        found = []
        for size in range(len(places) + 1):
            for chosen in combinations(places, size):
                groups = [self.field.candidates[place].rule.group for place in chosen]
                named = [group for group in groups if group is not None]
                if len(set(named)) == len(named) and self.used.isdisjoint(named):
                    found.append(self._played(chosen))
        return found

    def _played(self, chosen: tuple[int, ...]) -> Played:
        left, takers = list(self.left), []
        for place in chosen:
            candidate = self.field.candidates[place]
            if any(take_off(candidate.rule, self.field.scopes[candidate.scope], left)):
                takers.append(place)
        return Played(sum(self.left) - sum(left), tuple(takers))


def field_of(order: OrderBody, wallet: list[CouponRule]) -> CombinationField:
    """The coupons of the wallet that the order may use beside others."""
    assessed = [(rule, assess(rule, order, NOW)) for rule in wallet]
    return combination_field(
        [line.amount_minor for line in order.lines],
        [(rule, found.lines) for rule, found in assessed if isinstance(found, Eligible)],
    )


@st.composite
def midways(draw: st.DrawFn) -> Midway:
    """Some of the first candidates taken, as the groups allow."""
    field = field_of(draw(carts(max_lines=8)), draw(wallets(max_size=7, exclusive=False)))
    place = draw(st.integers(0, len(field.candidates)))
    left, used = list(field.amounts), set[str]()
    for candidate in field.candidates[:place]:
        group = candidate.rule.group
        if group not in used and draw(st.booleans()):
            take_off(candidate.rule, field.scopes[candidate.scope], left)
            used |= {group} if group is not None else set()
    return Midway(field, place, left, frozenset(used))


@settings(deadline=None, max_examples=200)
@given(midways())
def test_no_way_on_takes_more_than_either_ceiling(midway: Midway) -> None:
    """To the last unit, however discounts are rounded and fall on lines."""
    most = max(ending.discount for ending in midway.endings())

    assert most <= ceiling(midway.field, midway.place, midway.left, midway.used)
    assert most <= DivisibleCart.of(midway.field).ceiling(midway.place, midway.left, midway.used)


@settings(deadline=None, max_examples=200)
@given(midways())
def test_no_way_on_takes_so_much_with_fewer_coupons(midway: Midway) -> None:
    """The count that cuts ties off is a lower bound."""
    for ending in midway.endings():
        needed = coupons_needed(midway.field, midway.place, midway.left, midway.used, ending.discount)
        assert needed <= len(ending.places)


@settings(deadline=None)
@given(carts(max_lines=8), wallets(max_size=6, exclusive=False))
def test_lines_that_are_one_to_all_coupons_are_one_to_the_search(order: OrderBody, wallet: list[CouponRule]) -> None:
    """And the totals are those of the engine, which knows every line."""
    wallet = [rule for rule in wallet if isinstance(assess(rule, order, NOW), Eligible)]
    assume(len({rule.group for rule in wallet}) == len(wallet))

    played = field_of(order, wallet).play(range(len(wallet)))
    found = apply_coupons(order, wallet, NOW)

    assert found.discount_minor == played.discount
    assert len(found.applied) == len(played.places)


def test_coupons_for_everything_make_one_line_of_the_cart() -> None:
    """And coupons for parts that do not meet, one of each part."""
    cart = order_of([100, 200, 300, 400])
    whole, left, right = coupon(1, amount_minor=1), ids("p1", "p3"), ids("p2", "p4")

    assert (1000,) == field_of(cart, [whole, coupon(2, amount_minor=1)]).amounts
    apart = [coupon(1, amount_minor=1, products=left), coupon(2, amount_minor=1, products=right)]
    assert (400, 600) == field_of(cart, apart).amounts
    assert (100, 200, 300, 400) == field_of(cart, [*apart, whole]).amounts


def test_percentages_in_a_row_are_not_added_up() -> None:
    """Of one and the same scope, what the ceiling allows is what they take: 40951 of 100000, not 50000."""
    tenths = [coupon(number, percent_off_bp=1000) for number in range(1, 6)]
    field = field_of(order_of([60_000, 40_000]), tenths)

    assert 40_951 == field.play(range(5)).discount == ceiling(field, 0, list(field.amounts), frozenset())


def test_divisible_money_tells_scopes_that_overlap() -> None:
    """Where each scope by itself allows 4500, the row through the whole cart allows little more than is taken."""
    products = (ids("p1", "p2"), ids("p2", "p3"), ids("p1", "p3"))
    halves = [coupon(number, percent_off_bp=5000, products=which) for number, which in enumerate(products)]
    field = field_of(order_of([1_500, 1_500, 1_500]), halves)
    taken, left = field.play(range(3)).discount, list(field.amounts)

    rough = ceiling(field, 0, left, frozenset())
    sharp = DivisibleCart.of(field).ceiling(0, left, frozenset())

    assert 4_500 == rough
    assert taken <= sharp <= taken + 3


def test_whole_units_may_leave_a_coupon_more_than_divisible_money_does() -> None:
    """6 off [2, 2, 3] leaves the last line 1 unit, not 3/7 of one: the next coupon takes 7 in all, and not 6."""
    wallet = [coupon(1, amount_minor=6), coupon(2, amount_minor=8, products=ids("p3"))]
    field = field_of(order_of([2, 2, 3]), wallet)

    assert 7 == field.play(range(2)).discount
    assert 7 <= DivisibleCart.of(field).ceiling(0, [2, 2, 3], frozenset())


def test_of_a_group_one_coupon_counts() -> None:
    """The one that takes most, and none when the group has had its turn."""
    wallet = [coupon(number, amount_minor=number * 100, group="a") for number in (1, 2, 3)]
    field = field_of(order_of([5_000]), wallet)

    ceilings = [ceiling(field, 0, [5_000], frozenset(used)) for used in ((), ("a",))]

    assert [300, 0] == ceilings
    assert 300 == DivisibleCart.of(field).ceiling(0, [5_000], frozenset())
