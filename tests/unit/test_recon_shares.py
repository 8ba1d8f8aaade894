"""An amount that differs is booked on an order's coupons to the last unit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from coupon_workers.reconciliation.money_repair import shares_of

Weights = some.lists(some.integers(1, 2**53), min_size=1, max_size=50)


@given(total=some.integers(-(2**53), 2**53), weights=Weights)
def test_shares_sum_to_the_amount(total: int, weights: list[int]) -> None:
    """Of either sign, also when it is more than the coupons took off; no share has the other sign."""
    shares = shares_of(total, weights)

    assert total == sum(shares)
    assert all(share * total >= 0 for share in shares)


@given(total=some.integers(-(2**53), 2**53), weights=Weights)
def test_a_share_is_its_proportion_but_for_a_unit(total: int, weights: list[int]) -> None:
    """Rounded up or down, never further."""
    whole = sum(weights)

    for share, weight in zip(shares_of(total, weights), weights, strict=True):
        assert abs(share * whole - total * weight) < whole


@pytest.mark.parametrize(
    ("total", "weights", "shares"),
    [
        (1_000, [10_000, 10_000, 10_000], [334, 333, 333]),
        (-1_000, [10_000, 10_000, 10_000], [-334, -333, -333]),
        (7, [1, 1], [4, 3]),
        (1, [1, 2], [0, 1]),
        (500, [2_000], [500]),
        (0, [3], [0]),
    ],
)
def test_shares_are_by_largest_remainder(total: int, weights: list[int], shares: list[int]) -> None:
    """Of equal remainders the earlier coupon's goes up."""
    assert shares == shares_of(total, weights)
