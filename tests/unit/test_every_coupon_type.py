"""A coupon's type is known wherever types are told apart: what ``docs/extending.md`` lists for a new one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from coupon_workers.approval.budget import worst_cost_of
from coupon_workers.client import coupon_word
from coupon_workers.notify.message_text import Offer, offer_text
from coupon_workers.orders.coupon_rule import rule_of
from coupon_workers.orders.discount import discount_of
from coupon_workers.schema.coupon_template import COUPON_TYPES
from coupon_workers.templates.template import CouponType, TemplateBody
from coupon_workers.templates.template_row import columns_of
from tests.support.shopping import DAY, NOW
from web.console.word import WORDS

BODY: dict[str, Any] = {
    "name": "x",
    "currency": "CNY",
    "total_quantity": 1_000,
    "claim_start": "2026-11-11T00:00:00+08:00",
    "claim_end": "2026-11-12T00:00:00+08:00",
    "validity": {"mode": "relative", "days": 7},
}
COUPON = {"coupon_id": 7, "valid_from": NOW, "valid_to": NOW + DAY}

WIZARD = Path(__file__).parents[2] / "web" / "console" / "templates" / "template_wizard.html"


def test_all_lists_of_types_are_one_list() -> None:
    """The database's, that of templates, and the client's, which loads neither."""
    assert get_args(CouponType) == COUPON_TYPES == get_args(coupon_word.CouponType)


@pytest.mark.parametrize("name", COUPON_TYPES)
def test_the_console_asks_for_it_and_names_it(name: str) -> None:
    """In words, and with the fields of its value."""
    fields = " ".join(re.findall(r'data-for="([^"]*)"', WIZARD.read_text(encoding="utf-8"))).split()

    assert name in WORDS
    assert name in fields


VALUES: dict[str, dict[str, Any]] = {
    "amount_off": {"amount": 2_000},
    "percent_off": {"percent_off": 1_500, "max_discount": 5_000},
    "cash": {"amount": 1_000},
    "random_amount": {"pool": {"min": 100, "max": 8_800, "budget": 500_000, "distribution": "uniform"}},
}


def test_every_type_has_its_values_here() -> None:
    """Else the next test says nothing of it."""
    assert set(COUPON_TYPES) == set(VALUES)


@pytest.mark.parametrize("name", COUPON_TYPES)
def test_it_is_taken_costs_something_takes_something_off_and_is_put_into_words(name: str) -> None:
    """From a template's body to the message about its coupon."""
    columns = columns_of(TemplateBody.model_validate(BODY | {"type": name} | VALUES[name]))
    drawn = 4_321 if name == "random_amount" else None
    rule = rule_of(columns | {"template_id": 3}, COUPON | {"face_value_minor": drawn})
    value, cap = columns["amount_minor"] or drawn, columns["max_discount_minor"]
    offer = Offer("x", name, "CNY", value, columns["percent_off_bp"], cap, 0, "UTC", None)

    assert 0 < (worst_cost_of(columns, 1) or 0)
    assert 0 < discount_of(rule, 20_000) <= (worst_cost_of(columns, 1) or 0)
    assert {"a discount", "优惠"}.isdisjoint(offer_text(language, offer) for language in ("en", "zh"))
