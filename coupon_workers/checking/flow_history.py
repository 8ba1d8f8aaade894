"""DESIGN 3.6: the history of a coupon is a legal path, one row a transition, that ends in its status."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.coupon_transition import TRANSITIONS
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "flow_history"

# Each row is held against the one before it: numbers without a gap, each leaving the status the last one reached.
_BROKEN_PATHS = """
    SELECT user_id, coupon_id, flow_no, nth, action, from_status, to_status, before
      FROM (SELECT user_id, coupon_id, flow_no, action, from_status, to_status,
                   row_number() OVER path AS nth, lag(to_status) OVER path AS before
              FROM {flow}
            WINDOW path AS (PARTITION BY user_id, coupon_id ORDER BY flow_no)) AS step
     WHERE flow_no <> nth
        OR from_status IS DISTINCT FROM before
        OR (action, coalesce(from_status, ''), to_status)
           NOT IN (SELECT * FROM unnest(CAST(:actions AS text[]), CAST(:froms AS text[]), CAST(:tos AS text[])))
     ORDER BY user_id, coupon_id, flow_no LIMIT :breach_limit
"""

_OTHER_ENDS = """
    SELECT user_id, coupon_id, c.status, c.version, last.flow_no, last.to_status
      FROM {coupon} c
      FULL JOIN (SELECT DISTINCT ON (user_id, coupon_id) user_id, coupon_id, flow_no, to_status
                   FROM {flow} ORDER BY user_id, coupon_id, flow_no DESC) AS last USING (user_id, coupon_id)
     WHERE c.status IS DISTINCT FROM last.to_status OR c.version IS DISTINCT FROM last.flow_no
     ORDER BY user_id, coupon_id LIMIT :breach_limit
"""


def flow_history(services: Services) -> list[Breach]:
    """Coupons whose history has a gap or an illegal step, or ends elsewhere than the coupon stands."""
    return broken_histories(services, RULE, coupon="coupon", flow="coupon_flow")


def broken_histories(services: Services, rule: str, *, coupon: str, flow: str) -> list[Breach]:
    """The same of the coupons and the steps of these two tables, as breaches of ``rule``."""
    legal = sorted((action, before or "", after) for action, before, after in TRANSITIONS)
    actions, froms, tos = (list(column) for column in zip(*legal, strict=True))
    broken = [
        Breach(
            rule,
            f"coupon {row.coupon_id} user {row.user_id}",
            f"a legal step {row.nth} from {row.before or 'nothing'}",
            f"step {row.flow_no} {row.action} from {row.from_status or 'nothing'} to {row.to_status}",
        )
        for row in rows(services, _BROKEN_PATHS.format(flow=flow), {"actions": actions, "froms": froms, "tos": tos})
    ]
    ends = [
        Breach(
            rule,
            f"coupon {row.coupon_id} user {row.user_id}",
            f"its history's end: {row.to_status} after {row.flow_no or 0} steps",
            f"{row.status} at version {row.version}",
        )
        for row in rows(services, _OTHER_ENDS.format(coupon=coupon, flow=flow))
    ]
    return broken + ends
