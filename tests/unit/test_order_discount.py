"""What coupons take off an order: amounts that people have been told wrongly elsewhere, and rules for all others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coupon_workers.orders.coupon_rule import CouponRule
from coupon_workers.orders.discount import Discounts, apply_coupons, discount_of
from coupon_workers.orders.order import OrderBody
from coupon_workers.templates.currency import EXPONENTS
from tests.support.shopping import DAY, NOW, carts, coupon, ids, order_of, rules, wallets


def shares_of(found: Discounts) -> list[list[int]]:
    """The amounts of each applied coupon by line."""
    return [[share.amount_minor for share in used.allocations] for used in found.applied]


def codes_of(found: Discounts) -> list[tuple[int, str]]:
    """Each refused coupon with its code."""
    return [(refused.coupon_id, refused.code.value) for refused in found.refused]


@pytest.mark.parametrize(
    ("terms", "cart", "discount"),
    [
        ({"amount_minor": 2000}, [10_000], 2000),
        ({"percent_off_bp": 1000}, [2545], 255),
        ({"percent_off_bp": 1000}, [4995], 500),
        ({"percent_off_bp": 2900}, [100], 29),
        ({"percent_off_bp": 7000}, [90], 63),
        ({"percent_off_bp": 10_000}, [999], 999),
        ({"percent_off_bp": 2000, "max_discount_minor": 500}, [10_000], 500),
        ({"percent_off_bp": 2000, "max_discount_minor": 500}, [2000], 400),
        ({"amount_minor": 50_000}, [49_999], 49_999),
    ],
)
def test_one_coupon_takes_off(terms: dict[str, Any], cart: list[int], discount: int) -> None:
    """A half is rounded up on the discount, a cap holds, and nothing is taken below zero."""
    found = apply_coupons(order_of(cart), [coupon(**terms)], NOW)

    assert (sum(cart), discount, sum(cart) - discount) == (
        found.subtotal_minor,
        found.discount_minor,
        found.payable_minor,
    )


@pytest.mark.parametrize(
    ("amount", "cart", "expected"),
    [
        (1000, [10_000, 10_000, 10_000], [334, 333, 333]),
        (7, [999, 999, 2], [4, 3, 0]),
        (100, [1, 1, 1, 9_997], [0, 0, 0, 100]),
        (5, [0, 3, 3], [0, 3, 2]),
    ],
)
def test_a_discount_falls_on_lines_by_largest_remainder(amount: int, cart: list[int], expected: list[int]) -> None:
    """Every line that the coupon is for is told its share, a share of 0 too."""
    assert [expected] == shares_of(apply_coupons(order_of(cart), [coupon(amount_minor=amount)], NOW))


def test_lines_out_of_scope_are_left_alone() -> None:
    """They have no share."""
    found = apply_coupons(order_of([600, 400, 500]), [coupon(percent_off_bp=1000, products=ids("p1", "p3"))], NOW)

    assert [("1", 60), ("3", 50)] == [(each.line_id, each.amount_minor) for each in found.applied[0].allocations]


def test_a_cart_of_nothing_consumes_no_coupon() -> None:
    """It is not applicable, and the order is a normal one."""
    found = apply_coupons(order_of([0]), [coupon(amount_minor=50_000)], NOW)

    assert [(1, "NOTHING_TO_DISCOUNT")] == codes_of(found)
    assert ((), 0, 0) == (found.applied, found.discount_minor, found.payable_minor)


def test_a_percentage_of_too_little_is_not_consumed() -> None:
    """A tenth of 4 rounds to nothing; of 5, to one."""
    rule = coupon(percent_off_bp=1000)

    assert [(1, "NOTHING_TO_DISCOUNT")] == codes_of(apply_coupons(order_of([4]), [rule], NOW))
    assert 1 == apply_coupons(order_of([5]), [rule], NOW).discount_minor


@pytest.mark.parametrize(("currency", "exponent"), [("JPY", 0), ("CNY", 2), ("KWD", 3)])
def test_the_decimals_of_a_currency_change_no_amount(currency: str, exponent: int) -> None:
    """1000 less 275 is 725, of yen, fen or fils."""
    found = apply_coupons(order_of([1000], currency=currency), [coupon(amount_minor=275, currency=currency)], NOW)

    assert exponent == EXPONENTS[currency]
    assert (275, 725) == (found.discount_minor, found.payable_minor)


def test_another_currency_is_refused_and_the_others_are_used() -> None:
    """A CNY coupon on a JPY order."""
    wallet = [coupon(1, amount_minor=100), coupon(2, amount_minor=275, currency="JPY")]

    found = apply_coupons(order_of([1000], currency="JPY"), wallet, NOW)

    assert [(1, "CURRENCY_MISMATCH")] == codes_of(found)
    assert 725 == found.payable_minor


def test_a_percentage_is_of_what_is_left() -> None:
    """10 % after 2000 off is 800; before, it is 1000."""
    amount = coupon(1, amount_minor=2000, priority=10)
    later, earlier = coupon(2, percent_off_bp=1000, priority=20), coupon(2, percent_off_bp=1000, priority=5)

    assert 2800 == apply_coupons(order_of([10_000]), [later, amount], NOW).discount_minor
    assert 3000 == apply_coupons(order_of([10_000]), [amount, earlier], NOW).discount_minor


def test_a_threshold_is_held_against_list_prices() -> None:
    """Another coupon does not take the goods below it."""
    wallet = [coupon(1, amount_minor=5000, priority=1), coupon(2, amount_minor=2000, threshold_minor=10_000)]

    assert 7000 == apply_coupons(order_of([10_000]), wallet, NOW).discount_minor


def test_a_coupon_for_which_nothing_is_left_is_refused() -> None:
    """The others had it all; another line of the order is not touched for it."""
    wallet = [
        coupon(1, amount_minor=900, priority=1, products=ids("p1")),
        coupon(2, amount_minor=5, products=ids("p1")),
    ]

    found = apply_coupons(order_of([900, 100]), wallet, NOW)

    assert [(2, "NOTHING_TO_DISCOUNT")] == codes_of(found)
    assert 100 == found.payable_minor


def test_of_a_group_the_first_in_turn_is_used() -> None:
    """The other is refused, and takes nothing."""
    wallet = [coupon(2, amount_minor=5, group="a"), coupon(1, amount_minor=9, group="a"), coupon(3, amount_minor=1)]

    found = apply_coupons(order_of([100]), wallet, NOW)

    assert [(2, "STACKING_CONFLICT")] == codes_of(found)
    assert [1, 3] == [used.coupon_id for used in found.applied]


@pytest.mark.parametrize(("priority", "used"), [(1, 1), (200, 2)])
def test_an_exclusive_coupon_is_used_alone_or_not_at_all(priority: int, used: int) -> None:
    """Whichever has its turn first."""
    wallet = [coupon(1, amount_minor=5, exclusive=True, priority=priority), coupon(2, amount_minor=9)]

    found = apply_coupons(order_of([100]), wallet, NOW)

    assert [used] == [each.coupon_id for each in found.applied]
    assert [(3 - used, "STACKING_CONFLICT")] == codes_of(found)


def test_a_coupon_that_cannot_be_used_blocks_none_of_its_group() -> None:
    """Only what is used stands in the way."""
    wallet = [
        coupon(1, amount_minor=5, group="a", valid_from=NOW - 2 * DAY, valid_to=NOW),
        coupon(2, amount_minor=9, group="a"),
    ]

    found = apply_coupons(order_of([100]), wallet, NOW)

    assert [(1, "EXPIRED")] == codes_of(found)
    assert 91 == found.payable_minor


def test_a_coupon_given_twice_is_a_mistake() -> None:
    """Of the caller: it cannot be used twice."""
    with pytest.raises(ValueError, match="twice"):
        apply_coupons(order_of([100]), [coupon(1, amount_minor=5), coupon(1, amount_minor=5)], NOW)


def test_the_largest_amounts_stay_exact() -> None:
    """Of 2^53 - 1, no unit is lost: floats would lose some."""
    cart = [2**52 - 1, 2**51, 2**51]

    found = apply_coupons(order_of(cart), [coupon(percent_off_bp=3333)], NOW)

    assert (sum(cart) * 3333 + 5000) // 10_000 == found.discount_minor
    assert found.discount_minor == sum(shares_of(found)[0])


@settings(deadline=None)
@given(carts(), wallets(max_size=8))
def test_an_order_adds_up_line_by_line(order: OrderBody, wallet: list[CouponRule]) -> None:
    """Shares sum to the coupon's discount, discounts to the order's; no line and no order goes below zero."""
    found = apply_coupons(order, wallet, NOW)

    left = {line.line_id: line.amount_minor for line in order.lines}
    for used in found.applied:
        assert used.discount_minor == sum(share.amount_minor for share in used.allocations) > 0
        for share in used.allocations:
            left[share.line_id] -= share.amount_minor
            assert share.amount_minor >= 0
    assert all(amount >= 0 for amount in left.values())
    assert found.payable_minor == sum(left.values()) == found.subtotal_minor - found.discount_minor
    assert found.discount_minor == sum(used.discount_minor for used in found.applied)
    told = [used.coupon_id for used in found.applied] + [refused.coupon_id for refused in found.refused]
    assert sorted(rule.coupon_id for rule in wallet) == sorted(told)


@settings(deadline=None)
@given(carts(), wallets(max_size=8), st.randoms(use_true_random=False))
def test_the_order_in_which_coupons_are_given_changes_nothing(
    order: OrderBody, wallet: list[CouponRule], random: Any
) -> None:
    """But that the refused are told in it."""
    shuffled = list(wallet)
    random.shuffle(shuffled)

    found, again = apply_coupons(order, wallet, NOW), apply_coupons(order, shuffled, NOW)

    assert found.applied == again.applied
    assert set(found.refused) == set(again.refused)
    refused = {each.coupon_id for each in found.refused}
    assert [r.coupon_id for r in shuffled if r.coupon_id in refused] == [each.coupon_id for each in again.refused]


@settings(deadline=None)
@given(carts(), wallets(max_size=8))
def test_what_was_used_can_be_used_again_as_it_was(order: OrderBody, wallet: list[CouponRule]) -> None:
    """A lock with the coupons of a quote has the amounts of the quote: refused coupons had no part in it."""
    found = apply_coupons(order, wallet, NOW)

    used = {each.coupon_id for each in found.applied}
    again = apply_coupons(order, [rule for rule in wallet if rule.coupon_id in used], NOW)

    assert (found.applied, ()) == (again.applied, again.refused)


@given(rules(1), st.integers(0, 10**6), st.integers(0, 10**6))
def test_more_left_never_means_less_off_nor_less_left_over(rule: CouponRule, left: int, more: int) -> None:
    """And never more off than is left: what the search for the best combination rests on."""
    now, then = discount_of(rule, left), discount_of(rule, left + more)

    assert 0 <= now <= left
    assert now <= then <= now + more
