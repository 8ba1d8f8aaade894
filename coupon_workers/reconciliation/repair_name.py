"""The repairs there are, and which of them run by themselves (DESIGN 10)."""

from __future__ import annotations

from enum import StrEnum


class RepairName(StrEnum):
    """What mends a difference. Each is safe to run twice."""

    RECOUNT_TEMPLATE = "recount_template"
    """Set a template's counters to what its rows are."""
    PREHEAT = "preheat"
    """Rebuild a template's keys in Redis from the database."""
    RING_BELL = "ring_bell"
    """Wake the drain of a template's queue."""
    RELEASE_ORDER = "release_order"
    """Let go the coupons that an order no longer has a right to."""
    FREE_COUPON = "free_coupon"
    """Free a locked coupon that no order holds."""
    SWEEP_EXPIRED = "sweep_expired"
    """End the coupons whose validity has passed."""
    SWEEP_RISK = "sweep_risk"
    """Reject the held claims whose deadline has passed."""
    WAKE_BATCH = "wake_batch"
    """Send a batch's messages again."""
    WAKE_CODES = "wake_codes"
    """Send a code batch's messages again."""
    REDEEM_ORDER = "redeem_order"
    """Redeem an order that was paid elsewhere and is not redeemed here."""
    REFUND_ORDER = "refund_order"
    """Return all that is left of an order."""
    BOOK_ADJUSTMENT = "book_adjustment"
    """Book the amount that differs."""


AUTOMATIC = frozenset(
    {
        RepairName.RECOUNT_TEMPLATE,
        RepairName.PREHEAT,
        RepairName.RING_BELL,
        RepairName.RELEASE_ORDER,
        RepairName.FREE_COUPON,
        RepairName.SWEEP_EXPIRED,
        RepairName.SWEEP_RISK,
        RepairName.WAKE_BATCH,
        RepairName.WAKE_CODES,
    }
)
"""No money moves, and what they lead to follows from what is stored. The others wait for a person."""
