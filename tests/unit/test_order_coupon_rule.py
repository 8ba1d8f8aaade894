"""A coupon's rule, as it is read from the database."""

from __future__ import annotations

from typing import Any

import pytest

from coupon_workers.orders.coupon_rule import CouponRule, IdSet, rule_of
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_row import columns_of
from tests.support.shopping import DAY, NOW, coupon, ids

BODY: dict[str, Any] = {
    "name": "Double Eleven 100-20",
    "type": "amount_off",
    "currency": "CNY",
    "amount": 2000,
    "threshold": 10_000,
    "total_quantity": 1000,
    "claim_start": "2026-11-11T00:00:00+08:00",
    "claim_end": "2026-11-12T00:00:00+08:00",
    "validity": {"mode": "relative", "days": 7},
    "scope": {
        "products": {"exclude": ["p1"]},
        "categories": {"include": ["c1"]},
        "channels": ["app"],
        "user_tags": [5],
    },
    "stacking": {"group": "platform", "priority": 10},
}
PERCENT = {"type": "percent_off", "amount": None, "percent_off": 1500, "max_discount": 5000}
POOL = {"min": 100, "max": 8800, "budget": 500_000, "distribution": "uniform"}
ROW = {"coupon_id": 7, "face_value_minor": None, "valid_from": NOW, "valid_to": NOW + DAY}


def template(**changes: Any) -> dict[str, Any]:
    """The columns of a template."""
    return {"template_id": 3} | columns_of(TemplateBody.model_validate(BODY | changes))


def test_a_rule_has_all_that_its_template_says() -> None:
    """And the window of the coupon itself."""
    expected = CouponRule(
        coupon_id=7,
        template_id=3,
        type="amount_off",
        currency="CNY",
        amount_minor=2000,
        threshold_minor=10_000,
        products=ids(exclude=["p1"]),
        categories=ids("c1"),
        channels=frozenset({"app"}),
        user_tags=frozenset({"5"}),
        group="platform",
        priority=10,
        valid_from=NOW,
        valid_to=NOW + DAY,
    )

    assert expected == rule_of(template(), ROW)


def test_a_percentage_has_basis_points_and_a_cap() -> None:
    """And no amount."""
    rule = rule_of(template(**PERCENT), ROW)

    assert (None, 1500, 5000) == (rule.amount_minor, rule.percent_off_bp, rule.max_discount_minor)


def test_a_random_amount_is_worth_what_was_drawn() -> None:
    """The coupon's own face value."""
    random = template(type="random_amount", amount=None, pool=POOL)

    assert 4321 == rule_of(random, ROW | {"face_value_minor": 4321}).amount_minor


def test_a_random_amount_that_was_never_drawn_is_no_coupon() -> None:
    """Its row is broken: nothing is taken off by guess."""
    with pytest.raises(ValueError, match="coupon 7 has no value"):
        rule_of(template(type="random_amount", amount=None, pool=POOL), ROW)


@pytest.mark.parametrize(
    "terms",
    [
        {"type": "percent_off"},
        {"type": "percent_off", "percent_off_bp": 0},
        {"type": "percent_off", "percent_off_bp": 100, "amount_minor": 1},
        {"type": "cash", "amount_minor": 0},
        {"type": "cash", "amount_minor": -5},
        {"type": "amount_off", "percent_off_bp": 100},
    ],
)
def test_a_value_belongs_to_its_type(terms: dict[str, Any]) -> None:
    """One of the two, above zero."""
    with pytest.raises(ValueError, match="has no value of its type"):
        coupon(**terms)


@pytest.mark.parametrize(
    ("filter_", "held"),
    [
        (IdSet(), ["a", "b", None]),
        (ids("a"), ["a"]),
        (ids(exclude=["a"]), ["b", None]),
        (ids("a", "b", exclude=["a"]), ["b"]),
    ],
)
def test_a_filter_holds_what_is_in_and_not_out(filter_: IdSet, held: list[str | None]) -> None:
    """An empty list means all, exclusion wins; what has no name is on no list."""
    assert held == [name for name in ("a", "b", None) if filter_.holds(name)]


def test_coupons_have_their_turn_by_what_the_shop_says() -> None:
    """Lower priority first, then by template, larger face values, earlier ends; numbers last."""
    in_turn = [
        coupon(9, amount_minor=1, priority=1, template_id=8),
        coupon(8, amount_minor=1, template_id=1),
        coupon(7, amount_minor=5, template_id=2),
        coupon(6, amount_minor=4, template_id=2),
        coupon(4, amount_minor=3, template_id=2),
        coupon(5, amount_minor=3, template_id=2),
        coupon(3, amount_minor=3, template_id=2, valid_to=NOW + 2 * DAY),
        coupon(1, amount_minor=9, template_id=3),
        coupon(2, amount_minor=9, priority=101, template_id=1),
    ]

    assert in_turn == sorted(sorted(in_turn, key=id), key=lambda rule: rule.turn)


def test_a_group_and_an_exclusive_coupon_stand_in_the_way() -> None:
    """Of a group one is used; an exclusive one is used alone; two without a group go together."""
    free, other, exclusive = (
        coupon(1, amount_minor=1),
        coupon(2, amount_minor=1),
        coupon(3, amount_minor=1, exclusive=True),
    )
    a, also_a, b = (coupon(n, amount_minor=1, group=group) for n, group in ((4, "a"), (5, "a"), (6, "b")))

    assert not free.conflicts(other)
    assert exclusive.conflicts(free)
    assert free.conflicts(exclusive)
    assert a.conflicts(also_a)
    assert not a.conflicts(b)
    assert not a.conflicts(free)
