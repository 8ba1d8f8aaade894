"""Which events there are to tell of, and to whom (API.md, Back office)."""

from __future__ import annotations

from typing import Literal, get_args

EventName = Literal[
    "coupon.issued",
    "claim.rejected",
    "coupon.locked",
    "coupon.redeemed",
    "coupon.released",
    "coupon.returned",
    "coupon.expired",
    "coupon.expiring",
    "coupon.transferred",
    "coupon.revoked",
    "batch.finished",
    "finding.opened",
]

EVENTS: tuple[str, ...] = get_args(EventName)
"""What a webhook may ask for."""

USER_EVENTS = ("coupon.issued", "claim.rejected", "coupon.expiring")
"""What users are told of, if the template says so (``notify``)."""
