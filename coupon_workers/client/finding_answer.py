"""Reconciliations and findings, as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

ClassCount = TypedDict(
    "ClassCount",
    {
        "class": str,
        "state": Literal["open", "repaired", "approved", "ignored", "resolved"],
        "count": int,
        "amount": int | None,
        "currency": str | None,
    },
)
"""How many findings of a class there are in a state, and what is at stake with them."""


class RunSummary(TypedDict):
    """A reconciliation at this moment. `found` = `opened` and those known before."""

    run_id: str
    kind: Literal["stock", "state", "orders", "batches", "codes"]
    as_of: str
    date: str | None
    status: Literal["queued", "running", "done", "failed"]
    reason: str | None
    examined: int | None
    found: int | None
    opened: int | None
    resolved: int | None
    truncated: bool
    asked_by: str
    created_at: str
    started_at: str | None
    finished_at: str | None


class RunAnswer(RunSummary):
    """A reconciliation with what it found."""

    classes: list[ClassCount]


FindingAnswer = TypedDict(
    "FindingAnswer",
    {
        "finding_id": str,
        "kind": Literal["stock", "state", "orders", "batches", "codes"],
        "class": str,
        "subject": str,
        "date": str | None,
        "template_id": str | None,
        "user_id": str | None,
        "order_no": str | None,
        "coupon_no": str | None,
        "evidence": dict[str, Any],
        "amount": int | None,
        "currency": str | None,
        "repair": str | None,
        "automatic": bool,
        "state": Literal["open", "repaired", "approved", "ignored", "resolved"],
        "first_run_id": str,
        "last_run_id": str,
        "seen_as_of": str,
        "seen_count": int,
        "opened_at": str,
        "closed_at": str | None,
        "decided_by": str | None,
        "comment": str | None,
        "outcome": dict[str, Any] | None,
    },
)
"""A difference, what it would cost, what mends it, and what has become of it."""
