"""The state of coupons: their history, what they are used for, what was booked of it, and what should have ended
(DESIGN 3.5, 3.6, 3.7, 10).

All is read in one snapshot, so that what is on its way is seen with all its rows or with none. What has happened by
the moment in question is judged as it was then; what only shows how a thing stands now, where nothing has moved since.
"""

from __future__ import annotations

from datetime import date, datetime

from coupon_workers.checking.reading import snapshot
from coupon_workers.reconciliation.booking_differences import find_booking_differences
from coupon_workers.reconciliation.difference import Reading
from coupon_workers.reconciliation.history_differences import find_history_differences
from coupon_workers.reconciliation.lock_differences import find_lock_differences, find_unended
from coupon_workers.reconciliation.state_case import StateCase
from coupon_workers.reconciliation.state_sums import read_state_sums
from coupon_workers.reconciliation.use_differences import find_order_differences, find_use_differences
from coupon_workers.runtime.services import Services


def state_differences(services: Services, as_of: datetime, day: date | None) -> Reading:
    """Coupons, orders and bookings that contradict one another (see ``Reader``); ``examined`` are coupons.

    Of one root the first of these is told: the coupon's history, its use, its order, its booking, its deadline.
    """
    with snapshot(services) as connection:
        case = StateCase(connection, as_of)
        sums = read_state_sums(connection)
        if not sums.histories:
            find_history_differences(case)
        if not sums.uses:
            find_use_differences(case)
        find_order_differences(case)
        if not sums.bookings:
            find_booking_differences(case)
        find_lock_differences(case)
        find_unended(case)
    return Reading(case.differences, sums.coupons, frozenset(case.unjudged))
