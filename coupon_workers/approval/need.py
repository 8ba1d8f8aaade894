"""Whether a publication or a change of a template needs a second person, and why."""

from __future__ import annotations

from coupon_workers.approval.budget import Row, above_budget, worst_case_cost
from coupon_workers.runtime.settings import Settings

REQUIRED = "approval_required"
"""The template says so."""

BUDGET = "budget"
"""Its cost at worst is above the budget of its currency, whatever the template says."""


def reasons_to_ask(settings: Settings, row: Row) -> list[str]:
    """Why the template, as ``row`` has it, is published by two; empty: one is enough."""
    reasons = [REQUIRED] if row["approval_required"] else []
    if above_budget(settings, row["currency"], worst_case_cost(row)):
        reasons.append(BUDGET)
    return reasons


def reasons_to_ask_again(settings: Settings, before: Row, after: Row) -> list[str]:
    """Why a change of a template that was published is made by two; empty: one is enough.

    More units cost more. A later end costs no more at worst, but what a sale would have left unclaimed is claimed
    then: the first approval was for a sale of a certain length. What takes units or time away costs nothing, nor does
    a name.
    """
    costs = after["total_quantity"] > before["total_quantity"] or after["claim_end"] > before["claim_end"]
    return reasons_to_ask(settings, after) if costs else []
