"""What a template may cost at worst, and when two must agree."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coupon_workers.approval.budget import above_budget, costs_of, worst_case_cost, worst_cost_of
from coupon_workers.approval.need import reasons_to_ask, reasons_to_ask_again
from coupon_workers.errors import SettingsError
from coupon_workers.runtime.settings import Settings, read_settings

END = datetime(2026, 11, 12, tzinfo=UTC)


def row(**changed: Any) -> dict[str, Any]:
    """A thousand coupons of 20.00 CNY: 20,000.00 at worst."""
    return {
        "type": "amount_off",
        "currency": "CNY",
        "amount_minor": 2_000,
        "percent_off_bp": None,
        "max_discount_minor": None,
        "pool": None,
        "total_quantity": 1_000,
        "claim_end": END,
        "approval_required": None,
    } | changed


def budgets(text: str | None) -> Settings:
    """Settings with these budgets."""
    return Settings(approval_budgets=text)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, 2_000_000),
        ({"type": "cash", "amount_minor": 1}, 1_000),
        ({"type": "percent_off", "amount_minor": None, "max_discount_minor": 500}, 500_000),
        ({"type": "percent_off", "amount_minor": None}, None),
        ({"type": "random_amount", "amount_minor": None, "pool": {"budget": 7_777, "max": 100}}, 7_777),
        ({"amount_minor": 2**53 - 1, "total_quantity": 1}, 2**53 - 1),
        ({"amount_minor": 2**53 - 1, "total_quantity": 2}, None),
    ],
)
def test_the_cost_at_worst_is_that_of_every_coupon(changed: dict[str, Any], expected: int | None) -> None:
    """None: a bound that there is not, or that JSON readers cannot hold."""
    assert expected == worst_case_cost(row(**changed))


def test_random_amounts_of_a_few_users_cost_the_largest_within_the_budget() -> None:
    """Two of at most 100; a hundred of them are within the budget."""
    pool = row(type="random_amount", pool={"budget": 7_777, "max": 100})

    assert (200, 7_777) == (worst_cost_of(pool, 2), worst_cost_of(pool, 100))


@pytest.mark.parametrize(
    ("text", "cost", "expected"),
    [
        (None, None, False),
        ('{"USD": 0}', None, False),
        ('{"CNY": 100}', 100, False),
        ('{"CNY": 100}', 101, True),
        ('{"CNY": 100}', None, True),
        ('{"CNY": 0}', 1, True),
    ],
)
def test_a_budget_is_of_a_currency(text: str | None, cost: int | None, expected: bool) -> None:
    """What is exactly the budget is within it; without a bound is above each."""
    assert expected == above_budget(budgets(text), "CNY", cost)


@pytest.mark.parametrize(
    ("required", "budget", "expected"),
    [
        (None, None, []),
        (True, None, ["approval_required"]),
        (False, '{"CNY": 1999999}', ["budget"]),
        (True, '{"CNY": 1999999}', ["approval_required", "budget"]),
        (False, '{"CNY": 2000000}', []),
    ],
)
def test_a_template_cannot_talk_its_way_round_the_budget(
    required: bool | None, budget: str | None, expected: list[str]
) -> None:
    """It can ask for a second person, never refuse one."""
    assert expected == reasons_to_ask(budgets(budget), row(approval_required=required))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({"total_quantity": 1_001}, ["approval_required"]),
        ({"claim_end": END + timedelta(seconds=1)}, ["approval_required"]),
        ({"total_quantity": 999, "claim_end": END + timedelta(seconds=1)}, ["approval_required"]),
        ({"total_quantity": 999}, []),
        ({"claim_end": END - timedelta(seconds=1)}, []),
        ({}, []),
    ],
)
def test_more_units_and_a_later_end_are_asked_for_again(after: dict[str, Any], expected: list[str]) -> None:
    """Whatever takes away goes through at once."""
    before = row(approval_required=True)

    assert expected == reasons_to_ask_again(Settings(), before, before | after)


def test_a_small_template_cannot_grow_past_the_budget_unseen() -> None:
    """It was published by one; above the budget two are needed, below it still one."""
    settings = budgets('{"CNY": 2200000}')

    within = reasons_to_ask_again(settings, row(), row(total_quantity=1_100))
    above = reasons_to_ask_again(settings, row(), row(total_quantity=1_101))

    assert ([], ["budget"]) == (within, above)


def test_the_inbox_shows_both_costs() -> None:
    """A draft has cost nothing."""
    assert (2_000_000, 4_000_000) == costs_of("change", row(), {"total_quantity": 2_000})
    assert (0, 2_000_000) == costs_of("publication", row(), {})


@pytest.mark.parametrize(
    "text", ["x", "[]", '{"CNY": "1"}', '{"CNY": 1.5}', '{"CNY": true}', '{"CNY": -1}', '{"cny": 1}', '{"XXX": 1}']
)
def test_budgets_that_cannot_work_refuse_to_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """And name their variable."""
    monkeypatch.setenv("COUPON_APPROVAL_BUDGETS", text)

    with pytest.raises(SettingsError, match="COUPON_APPROVAL_BUDGETS: must be a JSON object"):
        read_settings()


def test_budgets_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty text is none."""
    monkeypatch.setenv("COUPON_APPROVAL_BUDGETS", '{"CNY": 5, "JPY": 0}')
    first = read_settings().budgets
    monkeypatch.setenv("COUPON_APPROVAL_BUDGETS", "")

    assert ({"CNY": 5, "JPY": 0}, {}) == (first, read_settings().budgets)
