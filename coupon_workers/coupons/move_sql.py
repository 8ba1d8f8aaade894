"""The SQL that goes with every move of a coupon: its row in the flow, whose wallet it changes, and the event for
whoever listens.

A move is one statement: ``WITH moved AS (UPDATE coupon …), flow AS (…), told AS (…)``. The UPDATE names the owner and
the statuses it leaves, raises ``version`` by one and returns the columns ``MOVED``; the rows written here follow from
what it returned, in the same transaction.
"""

from __future__ import annotations

from coupon_workers.coupons.transition import FlowAction
from coupon_workers.coupons.wallet_note import noted

MOVED = "user_id, coupon_id, template_id, version, before_status, status, order_no"
"""What the CTE ``moved`` returns: ``order_no`` is the order that held or holds the coupon, or NULL."""


def recorded(action: FlowAction, event: str | None) -> str:
    """The CTEs ``flow``, ``noted`` and, if the move is an ``event``, ``told``, for the CTE ``moved`` before them.

    The statement is given ``:operator`` (who or what triggered the move), ``:request_id`` (or NULL) and ``:now``.
    """
    flow = f"""
    flow AS (
        INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, from_status, to_status, order_no, operator,
                                 request_id, at)
        SELECT user_id, coupon_id, version, '{action}', before_status, status, order_no, :operator,
               CAST(:request_id AS text), CAST(:now AS timestamptz)
          FROM moved
    ),{noted("moved")}"""
    if event is None:
        return flow
    return f"""{flow},
    told AS (
        INSERT INTO outbox (event, user_id, template_id, coupon_id, detail, created_at)
        SELECT '{event}', user_id, template_id, coupon_id,
               jsonb_strip_nulls(jsonb_build_object('status', status, 'order_no', order_no, 'flow_no', version)),
               CAST(:now AS timestamptz)
          FROM moved
    )"""
