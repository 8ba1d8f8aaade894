"""Whether a coupon may be used on an order, and on which of its lines."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from coupon_workers.orders.eligibility import Eligible, Refusal, Refused, assess
from coupon_workers.orders.order import OrderBody
from tests.support.shopping import DAY, NOW, carts, coupon, ids, order_of, rules

LINES = [
    {"line_id": "1", "product_id": "p1", "category_id": "c1", "unit_price": 600, "quantity": 2},
    {"line_id": "2", "product_id": "p2", "category_id": "c1", "unit_price": 400, "quantity": 1},
    {"line_id": "3", "product_id": "p3", "unit_price": 50, "quantity": 1},
]
ORDER = OrderBody.model_validate(
    {"user_id": "u-1", "currency": "CNY", "channel": "app", "user_tags": ["vip"], "lines": LINES}
)


def code_of(order: OrderBody = ORDER, **terms: Any) -> str | None:
    """Why a coupon of these terms is refused; None when it is not."""
    found = assess(coupon(**({"amount_minor": 100} | terms)), order, NOW)
    return found.code if isinstance(found, Refused) else None


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({}, Eligible((0, 1, 2), 1650)),
        ({"products": ids("p2", "p9")}, Eligible((1,), 400)),
        ({"products": ids(exclude=["p1"])}, Eligible((1, 2), 450)),
        ({"categories": ids("c1")}, Eligible((0, 1), 1600)),
        ({"categories": ids(exclude=["c1"])}, Eligible((2,), 50)),
        ({"categories": ids("c1"), "products": ids(exclude=["p2"])}, Eligible((0,), 1200)),
        ({"channels": frozenset({"app", "h5"})}, Eligible((0, 1, 2), 1650)),
        ({"user_tags": frozenset({"new", "vip"})}, Eligible((0, 1, 2), 1650)),
        ({"threshold_minor": 1650}, Eligible((0, 1, 2), 1650)),
    ],
)
def test_a_coupon_is_for_the_lines_that_pass_both_filters(terms: dict[str, Any], expected: Eligible) -> None:
    """And for orders of its channels, of users with one of its tags."""
    assert expected == assess(coupon(amount_minor=100, **terms), ORDER, NOW)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({"currency": "JPY"}, "CURRENCY_MISMATCH"),
        ({"valid_from": NOW + DAY / 86_400_000, "valid_to": NOW + DAY}, "NOT_YET_VALID"),
        ({"valid_to": NOW}, "EXPIRED"),
        ({"channels": frozenset({"h5"})}, "SCOPE_MISMATCH"),
        ({"user_tags": frozenset({"new"})}, "SCOPE_MISMATCH"),
        ({"products": ids("p9")}, "SCOPE_MISMATCH"),
        ({"categories": ids("c1"), "products": ids("p3")}, "SCOPE_MISMATCH"),
        ({"threshold_minor": 1651}, "THRESHOLD_NOT_MET"),
        ({"products": ids("p2"), "threshold_minor": 401}, "THRESHOLD_NOT_MET"),
    ],
)
def test_a_coupon_that_does_not_fit_is_refused_with_a_code(terms: dict[str, Any], expected: str) -> None:
    """The codes of the contract."""
    assert expected == code_of(**terms)


def test_a_window_is_half_open() -> None:
    """It holds from its first instant on, and no more at its end."""
    rule = coupon(amount_minor=1)

    codes = [assess(rule, ORDER, instant) for instant in (rule.valid_from, rule.valid_to - DAY / 86_400_000)]

    assert all(isinstance(found, Eligible) for found in codes)
    assert isinstance(assess(rule, ORDER, rule.valid_to), Refused)


def test_an_order_without_channel_or_tags_fits_no_coupon_that_asks_for_them() -> None:
    """What is bound is not given away for want of a word."""
    order = order_of([100])

    assert Refusal.SCOPE_MISMATCH == code_of(order, channels=frozenset({"app"}))
    assert Refusal.SCOPE_MISMATCH == code_of(order, user_tags=frozenset({"vip"}))


def test_the_threshold_tells_what_is_missing() -> None:
    """Of the eligible amount, at list price."""
    found = assess(coupon(amount_minor=1, products=ids("p2"), threshold_minor=1000), ORDER, NOW)

    assert isinstance(found, Refused)
    assert 600 == found.shortfall_minor


def test_only_a_threshold_has_a_shortfall() -> None:
    """Elsewhere no amount would help."""
    found = assess(coupon(amount_minor=1, currency="JPY"), ORDER, NOW)

    assert isinstance(found, Refused)
    assert found.shortfall_minor is None


def test_a_cart_that_costs_nothing_has_nothing_to_discount() -> None:
    """The coupon is not consumed."""
    assert Refusal.NOTHING_TO_DISCOUNT == code_of(order_of([0, 0]))


def test_of_several_reasons_the_first_is_told() -> None:
    """In the order of the enum, whatever else is wrong."""
    wrong: list[dict[str, Any]] = [
        {"currency": "JPY"},
        {"valid_from": NOW + DAY, "valid_to": NOW + 2 * DAY},
        {"valid_from": NOW - 2 * DAY, "valid_to": NOW - DAY},
        {"products": ids("p9")},
        {"threshold_minor": 10_000},
    ]
    reasons = [code_of(**terms) for terms in wrong]

    assert list(Refusal)[: len(wrong)] == reasons
    for (first, terms), (_, others) in pairwise(zip(reasons, wrong, strict=True)):
        assert first == code_of(**(others | terms))


@given(carts(), rules(1))
def test_the_eligible_amount_is_that_of_the_eligible_lines(order: OrderBody, rule: Any) -> None:
    """Each line once, in order; above nothing, and at the threshold at least."""
    found = assess(rule, order, NOW)

    if isinstance(found, Eligible):
        assert sorted(set(found.lines)) == list(found.lines)
        assert found.amount_minor == sum(order.lines[line].amount_minor for line in found.lines)
        assert found.amount_minor >= max(1, rule.threshold_minor)
