"""What becomes of a coupon when its order is returned."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from coupon_workers.coupons.transition import CouponStatus, FlowAction, reaches
from coupon_workers.orders.coupon_return import CouponReturn, coupon_return
from coupon_workers.templates.terms import RefundRule
from tests.support.shopping import DAY, NOW

BEFORE, AFTER = NOW + DAY, NOW - DAY
NEVER: dict[str, Any] = {"return": "never"}
EXTENDED: dict[str, Any] = {"expired": "extend", "grace_days": 7}


def returned(valid_to: datetime, everything: bool = True, **terms: Any) -> CouponReturn | None:
    """The coupon of a template with these terms, of an order that is returned at ``NOW``."""
    rule = RefundRule.model_validate(terms)
    return coupon_return(rule, everything_returned=everything, valid_to=valid_to, now=NOW, timezone="Asia/Shanghai")


def test_a_coupon_comes_back_as_it_was() -> None:
    """While it holds; an extension is for those that have run out."""
    assert CouponReturn(CouponStatus.UNUSED, BEFORE) == returned(BEFORE)
    assert CouponReturn(CouponStatus.UNUSED, BEFORE) == returned(BEFORE, **EXTENDED)


def test_a_coupon_stays_redeemed_while_something_is_kept() -> None:
    """Or for good, when the template says so."""
    assert returned(BEFORE, everything=False) is None
    assert returned(BEFORE, **NEVER) is None
    assert returned(AFTER, **NEVER, **EXTENDED) is None


@pytest.mark.parametrize("valid_to", [NOW, AFTER])
@pytest.mark.parametrize("terms", [{}, {"expired": "extend", "grace_days": 0}, {"grace_days": 7}])
def test_a_coupon_that_has_run_out_ends_expired(valid_to: datetime, terms: dict[str, Any]) -> None:
    """The end of its validity is the first instant at which it does not hold."""
    assert CouponReturn(CouponStatus.EXPIRED, valid_to) == returned(valid_to, **terms)


def test_a_template_may_extend_a_coupon_that_has_run_out() -> None:
    """By local days from the refund on."""
    assert CouponReturn(CouponStatus.UNUSED, NOW + timedelta(days=7)) == returned(AFTER, **EXTENDED)


def test_the_table_has_every_end_of_a_return() -> None:
    """Nothing else can come of it."""
    ends = {found.status for found in (returned(BEFORE), returned(AFTER), returned(AFTER, **EXTENDED)) if found}

    assert reaches(FlowAction.REFUND, CouponStatus.REDEEMED) == ends
