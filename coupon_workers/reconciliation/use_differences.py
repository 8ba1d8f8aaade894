"""Coupons, their uses and their orders against one another (DESIGN 3.5)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.state_case import StateCase, coupon_subject, order_subject

# A coupon with the live use of it, and with the order that it names, where the three do not agree.
_OF_COUPONS = text("""
    SELECT user_id, coupon_id, coalesce(c.template_id, u.template_id) AS template_id,
           coalesce(c.order_no, u.order_no) AS order_no, c.status, c.order_no AS named, u.state, u.order_no AS used_by,
           own.state AS own_state, o.status AS order_status,
           greatest(c.updated_at, o.updated_at, d.updated_at) AS moved_at
      FROM (SELECT user_id, coupon_id, template_id, status, order_no, updated_at
              FROM coupon WHERE order_no IS NOT NULL OR status IN ('locked', 'redeemed')) AS c
      FULL JOIN (SELECT user_id, coupon_id, template_id, state, order_no
                   FROM coupon_use WHERE state IN ('locked', 'redeemed')) AS u USING (user_id, coupon_id)
      LEFT JOIN LATERAL (SELECT state FROM coupon_use own
                          WHERE own.user_id = c.user_id AND own.order_no = c.order_no AND own.coupon_id = c.coupon_id
                          OFFSET 0) AS own ON true
      LEFT JOIN LATERAL (SELECT status, updated_at FROM coupon_order o
                          WHERE o.user_id = c.user_id AND o.order_no = c.order_no OFFSET 0) AS o ON true
      LEFT JOIN LATERAL (SELECT updated_at FROM coupon d
                          WHERE d.user_id = u.user_id AND d.coupon_id = u.coupon_id AND c.coupon_id IS NULL
                          OFFSET 0) AS d ON true
     WHERE c.status IS DISTINCT FROM u.state OR c.order_no IS DISTINCT FROM u.order_no
     ORDER BY user_id, coupon_id LIMIT :most
""")

# A live use whose order is not as it is itself.
_OF_ORDERS = text("""
    SELECT user_id, order_no, u.coupon_id, u.template_id, u.state, u.lock_no, o.status, o.lock_no AS last_lock_no,
           greatest(o.updated_at, c.updated_at) AS moved_at
      FROM coupon_use u
      LEFT JOIN coupon_order o USING (user_id, order_no)
      LEFT JOIN LATERAL (SELECT updated_at FROM coupon c WHERE c.user_id = u.user_id AND c.coupon_id = u.coupon_id
                         OFFSET 0) AS c ON true
     WHERE u.state IN ('locked', 'redeemed')
       AND (o.status IS DISTINCT FROM u.state OR o.lock_no IS DISTINCT FROM u.lock_no)
     ORDER BY user_id, order_no, u.coupon_id LIMIT :most
""")


def find_use_differences(case: StateCase) -> None:
    """Locked coupons that nothing holds, redeemed ones that no order has paid with, live uses of other coupons."""
    for row in case.connection.execute(_OF_COUPONS, {"most": case.room}):
        if case.knows_coupon(row.user_id, row.coupon_id):
            continue
        if row.moved_at is not None and row.moved_at > case.as_of:
            case.unjudged.add(coupon_subject(row.user_id, row.coupon_id))
        else:
            _judge_coupon(case, row)


def _judge_coupon(case: StateCase, row: Any) -> None:
    seen = {"status": row.status, "coupon_order": row.named, "use": row.state, "use_order": row.used_by}
    if row.status == "locked" and row.state is None:
        # While the order stands it may be paid, and must be looked at first.
        held = row.order_status in ("locked", "redeemed")
        told = {"own_use": row.own_state, "order": row.order_status}
        repair = None if held else RepairName.FREE_COUPON
        case.add_coupon("coupon_held_by_no_order", row, repair, **seen, **told)
    elif row.status == "redeemed" and row.state != "redeemed":
        told = {"own_use": row.own_state, "order": row.order_status}
        case.add_coupon("redeemed_by_no_order", row, **seen, **told)
    else:
        case.add_coupon("use_differs", row, **seen)


def find_order_differences(case: StateCase) -> None:
    """Live uses of orders that have let go, or are not there; of a released order one difference."""
    for row in case.connection.execute(_OF_ORDERS, {"most": case.room}):
        if case.knows_coupon(row.user_id, row.coupon_id) or case.knows_order(row.user_id, row.order_no):
            continue
        if row.moved_at is not None and row.moved_at > case.as_of:
            case.unjudged |= {coupon_subject(row.user_id, row.coupon_id), order_subject(row.user_id, row.order_no)}
        else:
            _judge_order(case, row)


def _judge_order(case: StateCase, row: Any) -> None:
    seen = {"use": row.state, "order": row.status, "lock": row.lock_no, "order_lock": row.last_lock_no}
    if row.state == "locked" and row.status is None:
        case.add_coupon("coupon_held_by_no_order", row, RepairName.FREE_COUPON, **seen)
    elif row.state == "locked" and row.status == "released":
        case.add_order("lock_of_closed_order", row, RepairName.RELEASE_ORDER, **seen)
    elif row.state == "redeemed" and row.status != "redeemed":
        case.add_coupon("redeemed_by_no_order", row, **seen)
    else:
        case.add_coupon("use_differs", row, **seen)
