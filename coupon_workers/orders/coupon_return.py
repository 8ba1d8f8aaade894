"""What becomes of a coupon when its order is returned (DESIGN 7, 8; API.md, Templates: ``refund``)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from coupon_workers.coupons.transition import CouponStatus
from coupon_workers.templates.terms import RefundRule
from coupon_workers.templates.validity import days_later


@dataclass(frozen=True, slots=True)
class CouponReturn:
    """Where the coupon goes, and the end of its validity from now on."""

    status: CouponStatus
    valid_to: datetime


def coupon_return(
    rule: RefundRule, *, everything_returned: bool, valid_to: datetime, now: datetime, timezone: str
) -> CouponReturn | None:
    """None when the coupon stays redeemed: something of the order is kept, or it never comes back.

    One that still holds comes back as it was. One that has run out meanwhile ends expired, or holds ``grace_days``
    local days from ``now`` on.
    """
    if rule.return_ == "never" or not everything_returned:
        return None
    if now < valid_to:
        return CouponReturn(CouponStatus.UNUSED, valid_to)
    if rule.expired == "expire" or rule.grace_days == 0:
        return CouponReturn(CouponStatus.EXPIRED, valid_to)
    return CouponReturn(CouponStatus.UNUSED, days_later(now, rule.grace_days, timezone))
