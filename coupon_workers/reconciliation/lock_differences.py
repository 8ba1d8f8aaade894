"""What should have ended by now: locks of closed orders, locks past their deadline, coupons past their validity."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from coupon_workers.reconciliation.difference import Difference
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.state_case import StateCase, order_subject
from coupon_workers.runtime.clock import rfc3339

EVENT_LATE = timedelta(minutes=5)
"""An event that came at the moment of its order's lock is settled by a sweep, in seconds."""

LOCK_LATE = timedelta(minutes=15)
EXPIRY_LATE = timedelta(hours=1)

CLOSED = text("""
    SELECT DISTINCT ON (user_id, order_no) user_id, order_no, e.event_id, e.state, e.code, e.occurred_at,
           greatest(o.updated_at, e.tried_at) AS moved_at
      FROM coupon_order o JOIN order_event e USING (user_id, order_no)
     WHERE o.status = 'locked' AND e.type = 'closed'
       AND (e.state = 'refused' OR (e.state = 'waiting' AND greatest(e.tried_at, o.locked_at) <= :late))
     ORDER BY user_id, order_no, e.occurred_at DESC, e.event_id LIMIT :most
""")
OVERDUE = text("""
    SELECT user_id, order_no, lock_no, locked_until, updated_at AS moved_at
      FROM coupon_order WHERE status = 'locked' AND locked_until <= :late
     ORDER BY locked_until, user_id, order_no LIMIT :most
""")
# One released late may have waited for its sweep a moment only.
UNENDED = text("""
    SELECT template_id, count(*) AS coupons, min(valid_to) AS since
      FROM coupon WHERE status = 'unused' AND valid_to <= :late AND updated_at <= :late
     GROUP BY template_id ORDER BY template_id LIMIT :most
""")


def find_lock_differences(case: StateCase) -> None:
    """``lock_of_closed_order``, else ``lock_overdue``: of each order one."""
    for row in case.connection.execute(CLOSED, {"late": case.as_of - EVENT_LATE, "most": case.room}):
        if row.moved_at > case.as_of:
            case.unjudged.add(order_subject(row.user_id, row.order_no))
        elif not case.knows_order(row.user_id, row.order_no):
            seen = {"order": "locked", "event": row.event_id, "event_state": row.state, "code": row.code}
            seen["closed_at"] = rfc3339(row.occurred_at)
            case.add_order("lock_of_closed_order", row, RepairName.RELEASE_ORDER, **seen)
    for row in case.connection.execute(OVERDUE, {"late": case.as_of - LOCK_LATE, "most": case.room}):
        if row.moved_at > case.as_of:
            case.unjudged.add(order_subject(row.user_id, row.order_no))
        elif not case.knows_order(row.user_id, row.order_no):
            seen = {"order": "locked", "lock": row.lock_no, "locked_until": rfc3339(row.locked_until)}
            case.add_order("lock_overdue", row, RepairName.RELEASE_ORDER, **seen)


def find_unended(case: StateCase) -> None:
    """``expired_not_ended``: of each template one, with the count."""
    for row in case.connection.execute(UNENDED, {"late": case.as_of - EXPIRY_LATE, "most": case.room}):
        case.add(
            Difference(
                finding_class="expired_not_ended",
                subject=f"template {row.template_id} coupons",
                evidence={"unused": row.coupons, "first_ended_at": rfc3339(row.since)},
                repair=RepairName.SWEEP_EXPIRED,
                template_id=row.template_id,
            )
        )
