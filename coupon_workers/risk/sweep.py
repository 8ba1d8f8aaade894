"""The sweep of risk control: whatever was put aside has a deadline, and whatever was not told is told."""

from __future__ import annotations

from coupon_workers.risk.review_desk import expire_reviews, tell_forgotten
from coupon_workers.risk.subject_load import bring_missed
from coupon_workers.risk.verdict_log import drain_logs
from coupon_workers.runtime.services import Services


def sweep_risk(services: Services) -> dict[str, int]:
    """One pass: reject overdue reviews, tell gates what they have missed, empty their logs. Safe at any time, by any
    number. Returns how often each was done: ``expired``, ``told``, ``brought``, ``logged``.

    Raises ``StoreUnavailable``; what was done before stays done.
    """
    return {
        "expired": expire_reviews(services),
        "told": tell_forgotten(services),
        "brought": bring_missed(services),
        "logged": drain_logs(services),
    }
