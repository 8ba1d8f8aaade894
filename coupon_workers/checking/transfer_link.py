"""DESIGN 3.1, 7: a coupon that was received stands for one that was given away, one for one.

Received coupons are counted by no other rule of what was issued: this one keeps them from being made of nothing.
"""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "transfer_link"

_GIVEN = """
    SELECT user_id, coupon_id, given.status, link.to_user_id, link.to_coupon_id
      FROM (SELECT user_id, coupon_id, status FROM coupon WHERE status = 'transferred' UNION ALL
            SELECT user_id, coupon_id, status FROM coupon_archive WHERE status = 'transferred') AS given
      FULL JOIN coupon_transfer link USING (user_id, coupon_id)
     WHERE given.status IS NULL OR link.to_coupon_id IS NULL
     ORDER BY user_id, coupon_id LIMIT :breach_limit
"""

_RECEIVED = """
    SELECT user_id, coupon_id, template_id, count(from_template_id) AS givers
      FROM (SELECT user_id, coupon_id, template_id FROM coupon WHERE source = 'transfer' UNION ALL
            SELECT user_id, coupon_id, template_id FROM coupon_archive WHERE source = 'transfer') AS received
      FULL JOIN (SELECT to_user_id AS user_id, to_coupon_id AS coupon_id, user_id AS from_user_id,
                        coupon_id AS from_coupon_id FROM coupon_transfer) AS link USING (user_id, coupon_id)
      LEFT JOIN (SELECT user_id AS from_user_id, coupon_id AS from_coupon_id, template_id AS from_template_id
                   FROM coupon WHERE status = 'transferred' UNION ALL
                 SELECT user_id, coupon_id, template_id FROM coupon_archive WHERE status = 'transferred') AS given
           USING (from_user_id, from_coupon_id)
     GROUP BY user_id, coupon_id, template_id
    HAVING template_id IS NULL OR count(from_template_id) FILTER (WHERE from_template_id = template_id) <> 1
        OR count(*) <> 1
     ORDER BY user_id, coupon_id LIMIT :breach_limit
"""


def transfer_link(services: Services) -> list[Breach]:
    """Coupons given away to nobody, or not given away and yet received; received ones that come from nowhere."""
    given = [
        Breach(
            RULE,
            f"coupon {row.coupon_id} user {row.user_id}",
            "transferred, with the receiver's coupon",
            f"{row.status or 'not transferred'}, to {row.to_coupon_id or 'nobody'}",
        )
        for row in rows(services, _GIVEN)
    ]
    received = [
        Breach(
            RULE,
            f"coupon {row.coupon_id} user {row.user_id}",
            "a received coupon that stands for one given away, of its template",
            "no such coupon" if row.template_id is None else f"{row.givers} given away",
        )
        for row in rows(services, _RECEIVED)
    ]
    return given + received
