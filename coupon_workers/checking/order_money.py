"""DESIGN 3.7: the amounts of an order follow from its lines and its coupons, and the parts sum to the whole."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "order_money"

# Full joins and joins by a primary key stay fast whatever the statistics say: many tables here are young.
_TOTALS = """
    SELECT user_id, order_no, o.subtotal_minor, o.discount_minor, o.payable_minor, o.total, used.discount
      FROM (SELECT user_id, order_no, lock_no, subtotal_minor, discount_minor, payable_minor,
                   (SELECT coalesce(sum(unit_price * quantity), 0)
                      FROM jsonb_to_recordset(lines) AS l(unit_price numeric, quantity numeric)) AS total
              FROM coupon_order) AS o
      FULL JOIN (SELECT user_id, order_no, lock_no, sum(discount_minor) AS discount
                   FROM coupon_use GROUP BY user_id, order_no, lock_no) AS used USING (user_id, order_no, lock_no)
     WHERE o.subtotal_minor <> o.total
        OR (o.total IS NOT NULL AND o.discount_minor IS DISTINCT FROM used.discount)
        OR o.payable_minor <> o.subtotal_minor - o.discount_minor OR o.payable_minor < 0
     ORDER BY user_id, order_no LIMIT :breach_limit
"""

_USES = """
    SELECT user_id, order_no, coupon_id, discount_minor, reversed_minor, share.total
      FROM coupon_use u
     CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS total, coalesce(min(amount), 0) AS least
                           FROM jsonb_to_recordset(u.allocations) AS a(amount numeric)) AS share
     WHERE u.discount_minor <> share.total OR share.least < 0 OR u.discount_minor < 1
        OR u.reversed_minor NOT BETWEEN 0 AND u.discount_minor
     ORDER BY user_id, order_no, coupon_id LIMIT :breach_limit
"""

# Of all coupons on an order together. Those of an earlier lock were for the order as it was then.
_LINES = """
    SELECT user_id, order_no, share.line_id, share.amount, line.amount AS most
      FROM (SELECT user_id, order_no, lock_no, jsonb_agg(allocations) AS parts
              FROM coupon_use GROUP BY user_id, order_no, lock_no) AS u
      JOIN coupon_order o USING (user_id, order_no, lock_no)
     CROSS JOIN LATERAL (SELECT line_id, sum(amount) AS amount
                           FROM jsonb_array_elements(u.parts) AS part,
                                jsonb_to_recordset(part) AS a(line_id text, amount numeric)
                          GROUP BY line_id) AS share
      LEFT JOIN LATERAL (SELECT unit_price * quantity AS amount
                           FROM jsonb_to_recordset(o.lines) AS l(line_id text, unit_price numeric, quantity numeric)
                          WHERE l.line_id = share.line_id) AS line ON true
     WHERE line.amount IS NULL OR share.amount > line.amount
     ORDER BY user_id, order_no, share.line_id LIMIT :breach_limit
"""


def order_money(services: Services) -> list[Breach]:
    """Orders whose amounts do not follow from their lines and uses; uses that are not split as their discount is."""
    totals = [
        Breach(
            RULE,
            f"order {row.order_no} user {row.user_id}",
            f"{row.total} less {row.discount or 0}",
            f"{row.subtotal_minor} less {row.discount_minor} is {row.payable_minor}",
        )
        for row in rows(services, _TOTALS)
    ]
    uses = [
        Breach(
            RULE,
            f"order {row.order_no} user {row.user_id} coupon {row.coupon_id}",
            f"shares of 0 or more that sum to {row.discount_minor}, of which at most as much is reversed",
            f"{row.total}, reversed {row.reversed_minor}",
        )
        for row in rows(services, _USES)
    ]
    lines = [
        Breach(
            RULE,
            f"order {row.order_no} user {row.user_id} line {row.line_id}",
            "a line of the order" if row.most is None else f"at most {row.most} off",
            f"{row.amount} off",
        )
        for row in rows(services, _LINES)
    ]
    return totals + uses + lines
