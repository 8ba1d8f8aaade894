"""Sharing a budget out: the count, the bounds and the sum hold exactly, whatever the shape."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.pools.chance import shuffle
from coupon_workers.pools.face_values import Tier, bell, counts_of, even, tiered

Shape = Callable[[int, int, int, int], "array[int]"]
SHAPES = [even, bell]
MOST = 2**53 - 1


@st.composite
def budgets(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """A count, bounds, and a budget that can be shared out so; often at its own bounds."""
    count = draw(st.integers(1, 200))
    least, most = sorted((draw(st.integers(1, MOST // count)), draw(st.integers(1, MOST // count))))
    if draw(st.booleans()):
        most = min(most, least + draw(st.integers(0, 3)))
    budget = draw(st.sampled_from([count * least, count * most]) | st.integers(count * least, count * most))
    return count, least, most, budget


@pytest.mark.parametrize("shape", SHAPES)
@given(asked=budgets())
def test_exactly_so_many_values_within_their_bounds_sum_to_the_budget(
    shape: Shape, asked: tuple[int, int, int, int]
) -> None:
    """To the last unit, at the largest amounts too."""
    count, least, most, budget = asked

    values = shape(count, least, most, budget)

    assert (count, budget) == (len(values), sum(values))
    assert least <= min(values)
    assert max(values) <= most


@st.composite
def tiers(draw: st.DrawFn) -> tuple[int, list[Tier], int]:
    """A count, tiers that ascend, and a budget that they can take."""
    count = draw(st.integers(1, 200))
    marks = draw(st.lists(st.integers(1, 10**9), min_size=2, max_size=12, unique=True).map(sorted))
    bounds = list(zip(marks[0::2], marks[1::2], strict=False))
    made = [Tier(least, most, draw(st.integers(1, 1_000))) for least, most in bounds]
    counts = counts_of(count, [tier.weight for tier in made])
    least = sum(each * tier.least for each, tier in zip(counts, made, strict=True))
    most = sum(each * tier.most for each, tier in zip(counts, made, strict=True))
    return count, made, draw(st.sampled_from([least, most]) | st.integers(least, most))


@given(asked=tiers())
def test_each_tier_has_its_share_of_the_values(asked: tuple[int, list[Tier], int]) -> None:
    """By weight; all of them together sum to the budget."""
    count, made, budget = asked

    values = tiered(count, made, budget)

    assert (count, budget) == (len(values), sum(values))
    in_tiers = [sum(tier.least <= value <= tier.most for value in values) for tier in made]
    assert counts_of(count, [tier.weight for tier in made]) == in_tiers


@given(total=st.integers(0, 10**18), weights=st.lists(st.integers(0, 10**18), min_size=1, max_size=20))
def test_parts_sum_to_the_whole_and_fit_their_weights(total: int, weights: list[int]) -> None:
    """A whole of nothing but zeros cannot be parted."""
    whole = sum(weights) or 1
    weights = weights if sum(weights) else [1, *weights]

    parts = counts_of(total, weights)

    assert total == sum(parts)
    assert all(abs(part * whole - total * weight) <= whole for part, weight in zip(parts, weights, strict=True))
    if total <= whole:
        assert all(part <= weight for part, weight in zip(parts, weights, strict=True))


def test_even_values_lie_evenly_around_their_mean() -> None:
    """From 100 to about 900 for a mean of 500, though 8800 is allowed: each tenth of that has about a tenth."""
    values = even(20_000, 100, 8_800, 20_000 * 500)

    tenths = Counter((value - 100) // 80 for value in values if value < 900)
    assert 100 <= min(values) < 120
    assert 880 < max(values) < 920
    assert all(1_700 < tenths[tenth] < 2_300 for tenth in range(10))


def test_a_bell_is_high_in_the_middle_and_low_at_its_ends() -> None:
    """Two thirds lie within a third of the way to either end."""
    values = bell(20_000, 100, 8_800, 20_000 * 500)

    near = sum(abs(value - 500) <= 133 for value in values)
    far = sum(abs(value - 500) > 300 for value in values)
    assert 12_400 < near < 14_200
    assert far < 600


def test_the_shape_hangs_from_the_upper_bound_when_the_budget_is_near_it() -> None:
    """A mean of 8,500 of 8,800."""
    values = even(5_000, 100, 8_800, 5_000 * 8_500)

    assert 8_180 < min(values) < 8_220
    assert 8_780 < max(values) <= 8_800


def test_values_come_in_no_order() -> None:
    """The odd units that the budget leaves do not stand first, nor do tiers one behind the other."""
    values = tiered(2_000, [Tier(1, 9, 1), Tier(10, 99, 1)], 2_000 * 20)

    changes = sum((before < 10) != (after < 10) for before, after in pairwise(values))
    assert 800 < changes < 1_200


def test_a_shuffle_makes_every_order_alike_and_loses_nothing() -> None:
    """All six orders of three values, each about a sixth of the time."""
    orders: Counter[tuple[int, ...]] = Counter()
    for _ in range(6_000):
        values = array("q", [1, 2, 3])
        shuffle(values)
        orders[tuple(values)] += 1

    assert 6 == len(orders)
    assert all(800 < seen < 1_200 for seen in orders.values())
