"""Rounding and allocation: exact to the last unit, whatever the numbers."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.orders.money import allocate, half_up

MONEY = st.one_of(st.integers(0, 20), st.integers(0, 2**53 - 1))


@st.composite
def bills(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A total, and the amounts that it falls on."""
    amounts = draw(st.lists(MONEY, min_size=1, max_size=12))
    return draw(st.integers(0, sum(amounts))), amounts


@pytest.mark.parametrize(
    ("total", "amounts", "expected"),
    [
        (1000, [10_000, 10_000, 10_000], [334, 333, 333]),
        (7, [999, 999, 2], [4, 3, 0]),
        (100, [1, 1, 1, 9_997], [0, 0, 0, 100]),
        (100, [600, 400], [60, 40]),
        (2, [1, 1, 1], [1, 1, 0]),
        (5, [0, 5, 0], [0, 5, 0]),
        (0, [3, 4], [0, 0]),
        (0, [0, 0], [0, 0]),
        (0, [], []),
    ],
)
def test_a_total_falls_on_lines_by_largest_remainder(total: int, amounts: list[int], expected: list[int]) -> None:
    """Of equal remainders the earlier line goes up."""
    assert expected == allocate(total, amounts)


@given(bills())
def test_shares_sum_to_the_total(bill: tuple[int, list[int]]) -> None:
    """Nothing is lost, nothing is made."""
    total, amounts = bill

    assert total == sum(allocate(total, amounts))


@given(bills())
def test_no_share_is_above_its_line_or_below_nothing(bill: tuple[int, list[int]]) -> None:
    """A line is never paid for taking it."""
    total, amounts = bill

    shares = allocate(total, amounts)

    assert all(0 <= share <= amount for share, amount in zip(shares, amounts, strict=True))


@given(bills())
def test_a_share_is_less_than_a_unit_off_its_exact_part(bill: tuple[int, list[int]]) -> None:
    """The quotient, rounded one way or the other; exact quotients are kept."""
    total, amounts = bill
    whole = sum(amounts) or 1

    shares = allocate(total, amounts)

    assert all(abs(share - Fraction(total * each, whole)) < 1 for share, each in zip(shares, amounts, strict=True))


@given(bills())
def test_rounding_lifts_the_lines_by_a_quarter_of_a_unit_each_at_most(bill: tuple[int, list[int]]) -> None:
    """In sum: what the search for the best combination counts with."""
    total, amounts = bill
    whole = sum(amounts) or 1

    exact = [share - Fraction(total * each, whole) for share, each in zip(allocate(*bill), amounts, strict=True)]

    assert sum(error for error in exact if error > 0) <= Fraction(len(amounts), 4)


@given(bills(), st.randoms(use_true_random=False))
def test_the_order_of_lines_decides_between_equal_remainders_only(bill: tuple[int, list[int]], random: Random) -> None:
    """However lines are shuffled, each has the same share or one unit more or less; without ties, the same."""
    total, amounts = bill
    order = list(range(len(amounts)))
    random.shuffle(order)

    shares = allocate(total, amounts)
    shuffled = allocate(total, [amounts[line] for line in order])

    back = dict(zip(order, shuffled, strict=True))
    whole = sum(amounts) or 1
    remainders = [total * amount % whole for amount in amounts]
    for line, share in enumerate(shares):
        tied = remainders.count(remainders[line]) > 1
        assert abs(share - back[line]) <= (1 if tied else 0)


@given(bills())
def test_of_equal_amounts_the_earlier_has_no_less(bill: tuple[int, list[int]]) -> None:
    """Ties go by line order."""
    total, amounts = bill

    shares = allocate(total, amounts)

    for earlier, amount in enumerate(amounts):
        for later in range(earlier + 1, len(amounts)):
            assert amount != amounts[later] or shares[earlier] >= shares[later]


@pytest.mark.parametrize(("total", "amounts"), [(-1, [5]), (6, [5]), (1, []), (1, [3, -1])])
def test_what_cannot_be_shared_is_refused(total: int, amounts: list[int]) -> None:
    """A negative number, or more than the lines hold."""
    with pytest.raises(ValueError, match="cannot be allocated"):
        allocate(total, amounts)


@pytest.mark.parametrize(
    ("numerator", "denominator", "expected"),
    [
        (100 * 29, 100, 29),
        (90 * 7, 10, 63),
        (2545, 10, 255),
        (4995, 10, 500),
        (1, 2, 1),
        (1, 3, 0),
        (2, 3, 1),
        (0, 7, 0),
    ],
)
def test_a_half_is_rounded_up(numerator: int, denominator: int, expected: int) -> None:
    """In integers: 100 × 29 / 100 is 29."""
    assert expected == half_up(numerator, denominator)


@given(st.integers(0, 10**12), st.integers(1, 10**6))
def test_rounding_is_that_of_the_decimals(numerator: int, denominator: int) -> None:
    """As ``Decimal`` rounds half up, where it can hold the quotient."""
    exact = Fraction(numerator, denominator)

    rounded = half_up(numerator, denominator)

    assert Fraction(-1, 2) < rounded - exact <= Fraction(1, 2)
    if denominator in (2, 4, 5, 8, 10, 16):
        assert int((Decimal(numerator) / denominator).quantize(Decimal(1), ROUND_HALF_UP)) == rounded


@pytest.mark.parametrize(("numerator", "denominator"), [(-1, 2), (1, 0), (1, -2)])
def test_what_has_no_rounding_is_refused(numerator: int, denominator: int) -> None:
    """No negative money, no division by nothing."""
    with pytest.raises(ValueError, match="no rounding"):
        half_up(numerator, denominator)
