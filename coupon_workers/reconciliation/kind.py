"""What is compared, and where a run and a finding are in their lives (DESIGN 10, API.md, Back office)."""

from __future__ import annotations

from enum import StrEnum


class ReconKind(StrEnum):
    """What a reconciliation compares."""

    STOCK = "stock"
    """Redis, the queue, the database and its counters."""
    STATE = "state"
    """Coupons, their history, their orders and what was booked."""
    ORDERS = "orders"
    """A business day's orders and the order centre's statement."""
    BATCHES = "batches"
    """Campaign batches and what they have issued; claims held for review and their units."""
    CODES = "codes"
    """Code batches and what their codes became."""


class RunStatus(StrEnum):
    """Where a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class FindingState(StrEnum):
    """Where a finding is. All but ``open`` are ends."""

    OPEN = "open"
    REPAIRED = "repaired"
    """By itself: its repair is a safe one."""
    APPROVED = "approved"
    """By a person, and done."""
    IGNORED = "ignored"
    """By a person: the same difference is not opened again."""
    RESOLVED = "resolved"
    """A later run found the difference gone."""
