"""DESIGN 8: whatever waits has a deadline, and a sweep that owns it: locks of unpaid orders, events of unknown ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.patience import PATIENCE_S, looks
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "overdue_order"

LATE = timedelta(minutes=15)
"""The sweeps come in seconds. Workers that were away for a while have a heap to work off: it is older than this only
when nothing takes it away."""

EVENT_WAITS = timedelta(hours=24)
"""What an event's order is waited for."""

_OVERDUE = """
    SELECT 'order ' || order_no || ' user ' || user_id || ' lock ' || lock_no AS subject, locked_until AS due
      FROM coupon_order WHERE status = 'locked' AND locked_until <= :late
     UNION ALL
    SELECT 'event ' || event_id || ' user ' || user_id, tried_at + :event_waits
      FROM order_event WHERE state = 'waiting' AND tried_at + :event_waits <= :late
     ORDER BY due, subject LIMIT :breach_limit
"""


def overdue_order(services: Services, patience_s: float = PATIENCE_S) -> list[Breach]:
    """Locks and waiting events that are overdue by more than ``LATE`` and stay so for ``patience_s`` seconds.

    Raises ``StoreUnavailable``.
    """
    suspects = _overdue(services)
    for last in looks(patience_s):
        if not suspects or last:
            break
        still = _overdue(services)
        suspects = {subject: due for subject, due in still.items() if subject in suspects}
    return [Breach(RULE, subject, f"its end at {due}", "it is still there") for subject, due in suspects.items()]


def _overdue(services: Services) -> dict[str, Any]:
    arguments = {"late": services.clock() - LATE, "event_waits": EVENT_WAITS}
    return {row.subject: row.due for row in rows(services, _OVERDUE, arguments)}
