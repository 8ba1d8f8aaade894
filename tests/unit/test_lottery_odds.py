"""Odds: whole weights of a million, the prize of a number, and how often each comes."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.lottery.odds import WEIGHTS, draw_number, pick, weights_problem


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([1_000_000], None),
        ([10_000, 0, 990_000], None),
        ([999_999], "the weights must sum to 1000000, and sum to 999999"),
        ([600_000, 600_000], "the weights must sum to 1000000, and sum to 1200000"),
        ([], "the weights must sum to 1000000, and sum to 0"),
    ],
)
def test_weights_sum_to_a_million(weights: list[int], problem: str | None) -> None:
    """The message names the sum."""
    assert problem == weights_problem(weights)


@given(cuts=st.lists(st.integers(0, WEIGHTS), max_size=9), number=st.integers(0, WEIGHTS - 1))
def test_a_number_lies_in_the_span_of_its_prize(cuts: list[int], number: int) -> None:
    """Prize by prize, as wide as its weight; every number wins one."""
    edges = [0, *sorted(cuts), WEIGHTS]
    weights = [after - before for before, after in pairwise(edges)]

    prize_no = pick(weights, number)

    assert edges[prize_no - 1] <= number < edges[prize_no]


def test_a_million_draws_come_out_as_the_weights_say() -> None:
    """Within four standard deviations, prize by prize, of seeded numbers."""
    weights = [100, 9_900, 90_000, 300_000, 600_000]
    chance = random.Random(20_261_111)

    drawn = Counter(pick(weights, chance.randrange(WEIGHTS)) for _ in range(WEIGHTS))

    for prize_no, weight in enumerate(weights, start=1):
        assert abs(drawn[prize_no] - weight) <= 4 * sqrt(weight * (1 - weight / WEIGHTS)), prize_no


def test_the_numbers_of_draws_are_within_the_weights() -> None:
    """Each of the operating system's chance."""
    numbers = [draw_number() for _ in range(1_000)]

    assert 0 <= min(numbers) < max(numbers) < WEIGHTS
    assert len(set(numbers)) > 900
