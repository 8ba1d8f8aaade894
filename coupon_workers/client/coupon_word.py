"""What a coupon's type, its status and where it comes from may be."""

from __future__ import annotations

from typing import Literal

CouponType = Literal["amount_off", "percent_off", "cash", "random_amount"]
CouponStatus = Literal["unused", "locked", "redeemed", "expired", "revoked", "transferred"]
CouponSource = Literal["claim", "batch", "code", "lottery", "transfer", "manual"]
