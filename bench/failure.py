"""What ends a row: a number that cannot be trusted is not shown."""

from __future__ import annotations

from coupon_workers.errors import CouponWorkersError


class BenchFailure(CouponWorkersError):  # noqa: N818 - it says what happened
    """Something did not do the work it was to be measured at."""
