"""The best combination of a wallet: what is best, that it is found, and when it says that it is."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coupon_workers.orders.best_combination import Combination, best_combination
from coupon_workers.orders.coupon_rule import CouponRule
from coupon_workers.orders.discount import apply_coupons
from coupon_workers.orders.order import MAX_COUPONS, OrderBody
from tests.support.shopping import DAY, NOW, best_by_trying_all, carts, coupon, ids, order_of, wallets


def used_by(combination: Combination) -> list[int]:
    """The numbers of the coupons used, ascending."""
    return sorted(used.coupon_id for used in combination.discounts.applied)


def codes_of(combination: Combination) -> list[tuple[int, str, int | None]]:
    """The others, with their codes and shortfalls."""
    return [(each.coupon_id, each.code.value, each.shortfall_minor) for each in combination.discounts.refused]


@settings(deadline=None, max_examples=200)
@given(carts(), wallets(max_size=7))
def test_of_a_small_wallet_the_best_is_found(order: OrderBody, wallet: list[CouponRule]) -> None:
    """As trying all of them finds it, down to the last line; and it is known to be the best."""
    expected = best_by_trying_all(order, wallet)

    found = best_combination(order, wallet, NOW)

    assert found.complete
    assert found.exact
    assert expected.applied == found.discounts.applied
    assert expected.payable_minor == found.discounts.payable_minor


@settings(deadline=None, max_examples=150)
@given(carts(), wallets(max_size=8), st.integers(1, 12))
def test_a_search_that_is_cut_short_does_not_boast(order: OrderBody, wallet: list[CouponRule], nodes: int) -> None:
    """What it says to be exact is, what it says to be complete is the preferred one; all else is allowed at least."""
    expected = best_by_trying_all(order, wallet)

    found = best_combination(order, wallet, NOW, node_budget=nodes)

    assert found.nodes <= nodes
    assert found.discounts.discount_minor <= expected.discount_minor
    assert not found.exact or expected.discount_minor == found.discounts.discount_minor
    assert not found.complete or expected.applied == found.discounts.applied
    assert found.exact or not found.complete


@settings(deadline=None)
@given(carts(), wallets(max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_the_wallet_changes_nothing(order: OrderBody, wallet: list[CouponRule], random: Random) -> None:
    """Nor does asking again; the others are told in the wallet's order, each with a reason."""
    shuffled = random.sample(wallet, len(wallet))

    found, again = best_combination(order, wallet, NOW), best_combination(order, shuffled, NOW)

    assert found.discounts.applied == again.discounts.applied
    assert (found.exact, found.complete, found.nodes) == (again.exact, again.complete, again.nodes)
    others = [rule.coupon_id for rule in shuffled if rule.coupon_id not in used_by(found)]
    assert others == [refused.coupon_id for refused in again.discounts.refused]


@settings(deadline=None)
@given(carts(), wallets(max_size=12))
def test_a_lock_with_the_coupons_of_the_quote_takes_off_the_same(order: OrderBody, wallet: list[CouponRule]) -> None:
    """And refuses none of them."""
    found = best_combination(order, wallet, NOW)

    locked = apply_coupons(order, [rule for rule in wallet if rule.coupon_id in used_by(found)], NOW)

    assert (found.discounts.applied, ()) == (locked.applied, locked.refused)
    assert found.discounts.payable_minor == locked.payable_minor


@pytest.mark.parametrize(
    ("wallet", "expected"),
    [
        ([], []),
        ([coupon(1, amount_minor=10), coupon(2, amount_minor=20)], [1, 2]),
        ([coupon(1, amount_minor=10, group="a"), coupon(2, amount_minor=20, group="a")], [2]),
        ([coupon(1, amount_minor=30, exclusive=True), coupon(2, amount_minor=20), coupon(3, amount_minor=20)], [2, 3]),
        ([coupon(1, amount_minor=41, exclusive=True), coupon(2, amount_minor=20), coupon(3, amount_minor=20)], [1]),
        ([coupon(1, amount_minor=1000), coupon(2, amount_minor=600), coupon(3, amount_minor=400)], [1]),
        ([coupon(1, amount_minor=40, exclusive=True), coupon(2, amount_minor=20), coupon(3, amount_minor=20)], [1]),
        ([coupon(1, amount_minor=9, group="a", valid_to=NOW + 2 * DAY), coupon(2, amount_minor=9, group="a")], [2]),
        ([coupon(2, amount_minor=9, group="a"), coupon(1, amount_minor=9, group="a")], [1]),
        ([coupon(1, amount_minor=999), coupon(2, amount_minor=1), coupon(3, amount_minor=1)], [1, 2]),
    ],
    ids=[
        "an empty wallet",
        "all that go together",
        "the larger of a group",
        "together more than alone",
        "alone more than together",
        "fewer for the same",
        "alone is fewer",
        "the earlier end of equals",
        "the lower number of equals",
        "no coupon more than needed",
    ],
)
def test_the_best_is_the_larger_then_the_fewer_then_the_earlier(wallet: list[CouponRule], expected: list[int]) -> None:
    """Of a cart of 1000."""
    assert expected == used_by(best_combination(order_of([600, 400]), wallet, NOW))


def test_a_larger_coupon_may_have_to_wait_for_two_smaller_ones() -> None:
    """Taking the most at each step would miss it: two groups that the large one does not belong to, on other lines."""
    wallet = [
        coupon(1, amount_minor=500, group="a"),
        coupon(2, amount_minor=450, group="a", products=ids("p1")),
        coupon(3, amount_minor=400, group="b", products=ids("p2")),
    ]

    assert [2, 3] == used_by(best_combination(order_of([450, 400]), wallet, NOW))


def test_every_other_coupon_is_told_why_not() -> None:
    """What it lacks, what it conflicts with, or that it would take nothing more."""
    wallet = [
        coupon(1, amount_minor=900),
        coupon(2, amount_minor=50, threshold_minor=1_200),
        coupon(3, amount_minor=50, currency="JPY"),
        coupon(4, amount_minor=50, exclusive=True),
        coupon(5, amount_minor=100, group="a"),
        coupon(6, amount_minor=90, group="a"),
        coupon(7, amount_minor=80, priority=200),
    ]

    found = best_combination(order_of([1_000]), wallet, NOW)

    assert [1, 5] == used_by(found)
    assert [
        (2, "THRESHOLD_NOT_MET", 200),
        (3, "CURRENCY_MISMATCH", None),
        (4, "STACKING_CONFLICT", None),
        (6, "STACKING_CONFLICT", None),
        (7, "NOTHING_TO_DISCOUNT", None),
    ] == codes_of(found)


def test_a_cart_of_nothing_uses_no_coupon() -> None:
    """None is consumed for nothing."""
    found = best_combination(order_of([0]), [coupon(1, amount_minor=5), coupon(2, percent_off_bp=10_000)], NOW)

    assert ([], True, 0) == (used_by(found), found.complete, found.discounts.payable_minor)


def test_a_wallet_with_a_coupon_twice_is_a_mistake() -> None:
    """Of the caller."""
    with pytest.raises(ValueError, match="twice"):
        best_combination(order_of([10]), [coupon(1, amount_minor=5), coupon(1, amount_minor=5)], NOW)


def large_cart(random: Random, lines: int = 30) -> OrderBody:
    """Thirty lines of five categories, 1.00 to 200.00 a piece."""
    return order_of(
        [],
        lines=[
            {
                "line_id": str(number),
                "product_id": f"p{number}",
                "category_id": f"c{random.randrange(5)}",
                "unit_price": random.randrange(100, 20_000),
                "quantity": random.randrange(1, 4),
            }
            for number in range(lines)
        ],
    )


def large_wallet(
    random: Random, subtotal: int, templates: int, groups: int, share_for_all: float = 0.5
) -> list[CouponRule]:
    """Fifty coupons of some templates: amounts up to 4 % of the cart, percentages up to 15 %, caps, thresholds."""
    terms: list[dict[str, Any]] = []
    for number in range(templates):
        amount = {"amount_minor": random.randrange(subtotal // 500, subtotal // 25)}
        percent = {"percent_off_bp": random.randrange(100, 1_500), "max_discount_minor": random.choice((None, 8_000))}
        some = ids(*random.sample([f"c{each}" for each in range(5)], random.randrange(1, 4)))
        terms.append(
            {
                "template_id": number,
                "priority": random.choice((50, 100, 100)),
                "threshold_minor": random.choice((0, subtotal // 4)),
                "categories": ids() if random.random() < share_for_all else some,
                "group": random.choice((None, *(f"g{each}" for each in range(groups)))),
                "exclusive": number % 11 == 10,
            }
            | (amount if random.random() < 0.6 else percent)
        )
    ends = [NOW + DAY * random.randrange(1, 30) for _ in range(50)]
    return [coupon(number, valid_to=end, **random.choice(terms)) for number, end in enumerate(ends, start=1)]


def found_for(seed: int, **wallet: Any) -> Combination:
    """The best combination of a large wallet for a large cart."""
    random = Random(seed)
    cart = large_cart(random)
    return best_combination(cart, large_wallet(random, cart.subtotal_minor, **wallet), NOW)


MOST_NODES = 200
"""A node costs 50 to 80 microseconds for 50 coupons on 30 lines: 20 ms are not reached."""


@pytest.mark.parametrize("templates", [8, 12, 20, 50])
@pytest.mark.parametrize("groups", [0, 3])
def test_a_wallet_of_fifty_coupons_is_searched_in_few_nodes(templates: int, groups: int) -> None:
    """For a cart of thirty lines the best is found, and known to be the best, five times in six at least."""
    found = [found_for(seed, templates=templates, groups=groups) for seed in range(12)]

    assert sum(each.exact for each in found) >= 10
    assert max(each.nodes for each in found) <= MOST_NODES


@pytest.mark.parametrize("groups", [0, 6, 12])
def test_the_hardest_wallets_end_within_the_budget(groups: int) -> None:
    """Fifty templates of their own: the answer is good, and says whether it is the best."""
    for seed in range(4):
        found = found_for(seed, templates=50, groups=groups, share_for_all=0.1)

        longer = Random(seed)
        cart = large_cart(longer)
        wallet = large_wallet(longer, cart.subtotal_minor, 50, groups, 0.1)
        best = best_combination(cart, wallet, NOW, node_budget=3_000)

        assert found.nodes <= MOST_NODES
        assert found.discounts.discount_minor >= best.discounts.discount_minor * 99 // 100
        assert not found.exact or found.discounts.discount_minor == best.discounts.discount_minor


def test_a_cart_of_a_thousand_lines_visits_fewer_nodes() -> None:
    """Each of them costs more."""
    random = Random(1)
    cart = large_cart(random, lines=1_000)

    found = best_combination(cart, large_wallet(random, cart.subtotal_minor, 12, 3), NOW)

    assert found.nodes <= 16
    assert 0 < found.discounts.discount_minor < cart.subtotal_minor


def test_no_more_coupons_are_used_than_an_order_may_name() -> None:
    """The largest of them; what is answered can be locked. The others are not said to take nothing off."""
    wallet = [coupon(number, amount_minor=number) for number in range(1, MAX_COUPONS + 11)]

    found = best_combination(order_of([100_000]), wallet, NOW)

    assert found.exact
    assert [*range(11, MAX_COUPONS + 11)] == used_by(found)
    assert [(number, "STACKING_CONFLICT", None) for number in range(1, 11)] == codes_of(found)


@settings(deadline=None, max_examples=150)
@given(carts(), wallets(max_size=7), st.integers(1, 3))
def test_a_bound_on_how_many_are_used_holds_and_is_not_boasted_about(
    order: OrderBody, wallet: list[CouponRule], most: int
) -> None:
    """As trying all combinations of so many finds it."""
    best = max(
        (apply_coupons(order, some, NOW) for size in range(most + 1) for some in combinations(wallet, size)),
        key=lambda tried: tried.discount_minor,
    )

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("coupon_workers.orders.best_combination.MAX_COUPONS", most)
        found = best_combination(order, wallet, NOW)

    assert len(found.discounts.applied) <= most
    assert found.exact
    assert best.discount_minor == found.discounts.discount_minor
