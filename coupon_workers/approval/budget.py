"""What a template may cost at worst, and whether that needs a second person (DESIGN 8: integers of minor units)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coupon_workers.runtime.settings import Settings
from coupon_workers.templates.field_type import MAX_EXACT

Row = Mapping[str, Any]
"""A row of ``coupon_template``, or what it would be."""


def worst_case_cost(row: Row) -> int | None:
    """Minor units that all of the template's coupons take off when each is used to the full; None: without a bound.

    Of random amounts it is the pool's budget. A percentage without a cap has no bound, nor has what no JSON reader
    keeps exact.
    """
    if row["type"] == "random_amount":
        return int(row["pool"]["budget"])
    return worst_cost_of(row, row["total_quantity"])


def worst_cost_of(row: Row, coupons: int) -> int | None:
    """The same of so many of its coupons; of random amounts, of the largest, which are within the budget too."""
    if row["type"] == "random_amount":
        return min(int(row["pool"]["max"]) * coupons, int(row["pool"]["budget"]))
    each = row["max_discount_minor"] if row["type"] == "percent_off" else row["amount_minor"]
    cost = None if each is None else each * coupons
    return cost if cost is None or cost <= MAX_EXACT else None


def costs_of(kind: str, template: Row, after: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The cost at worst before and after ``after`` (fields by name) are applied; a draft has cost nothing."""
    changed = dict(template) | {"total_quantity": after.get("total_quantity", template["total_quantity"])}
    return worst_case_cost(template) if kind == "change" else 0, worst_case_cost(changed)


def above_budget(settings: Settings, currency: str, cost: int | None) -> bool:
    """Whether ``cost`` is more than the budget of its currency; where none is named, nothing is."""
    budget = settings.budgets.get(currency)
    return budget is not None and (cost is None or cost > budget)
