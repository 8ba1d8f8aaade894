"""The moves a coupon may make (DESIGN 7), as a checker knows them: written apart from the code that makes them."""

from __future__ import annotations

TRANSITIONS = frozenset(
    {
        ("issue", None, "unused"),
        ("lock", "unused", "locked"),
        ("redeem", "locked", "redeemed"),
        ("redeem", "unused", "redeemed"),  # direct use without a lock
        ("release", "locked", "unused"),
        ("refund", "redeemed", "unused"),
        ("refund", "redeemed", "expired"),  # its validity has passed meanwhile
        ("expire", "unused", "expired"),
        ("revoke", "unused", "revoked"),
        ("transfer", "unused", "transferred"),
    }
)
"""(action, from status, to status)."""
