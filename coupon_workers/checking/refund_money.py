"""DESIGN 3.7: refunds never exceed what was paid, and however an order is returned they sum to it."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "refund_money"

# What goes back for a piece is its list price less the discount reversed with it: so refunds and reversals together
# are the list price of all that was returned.
_SUMS = """
    SELECT user_id, order_no, o.status, o.payable_minor, o.discount_minor, o.refunded_minor, o.refund_count,
           o.fully_returned_at, coalesce(r.refunded, 0) AS refunded, coalesce(r.reversed, 0) AS reversed,
           coalesce(r.refunds, 0) AS refunds, coalesce(r.last_seq, 0) AS last_seq, u.reversed AS used_reversed
      FROM (SELECT user_id, order_no, sum(refund_minor) AS refunded, sum(discount_reversed_minor) AS reversed,
                   count(*) AS refunds, max(refund_seq) AS last_seq
              FROM coupon_refund GROUP BY user_id, order_no) AS r
      FULL JOIN coupon_order o USING (user_id, order_no)
      LEFT JOIN (SELECT user_id, order_no, sum(reversed_minor) AS reversed
                   FROM coupon_use GROUP BY user_id, order_no) AS u USING (user_id, order_no)
     WHERE o.status IS NULL
        OR o.refunded_minor <> coalesce(r.refunded, 0) OR o.refunded_minor > o.payable_minor
        OR coalesce(u.reversed, 0) <> coalesce(r.reversed, 0) OR coalesce(r.reversed, 0) > o.discount_minor
        OR o.refund_count <> coalesce(r.refunds, 0) OR o.refund_count <> coalesce(r.last_seq, 0)
        OR (o.refund_count > 0 AND o.status <> 'redeemed')
        OR (o.fully_returned_at IS NOT NULL
            AND (o.refunded_minor <> o.payable_minor OR coalesce(r.reversed, 0) <> o.discount_minor))
     ORDER BY user_id, order_no LIMIT :breach_limit
"""

_PIECES = """
    SELECT user_id, order_no, bool_or(sold IS NULL OR back > sold OR back < 0) AS beyond,
           bool_and(back = sold) AS all_back, min(o.fully_returned_at) AS fully_returned_at,
           sum(back * unit_price) AS gross, min(r.worth) AS worth
      FROM (SELECT user_id, order_no, line_id, unit_price, sold, coalesce(back, 0) AS back
              FROM (SELECT user_id, order_no, line_id, unit_price, quantity AS sold
                      FROM coupon_order, jsonb_to_recordset(lines)
                        AS l(line_id text, unit_price numeric, quantity numeric)
                     WHERE refund_count > 0 OR fully_returned_at IS NOT NULL) AS line
              FULL JOIN (SELECT user_id, order_no, line_id, sum(quantity) AS back
                           FROM coupon_refund, jsonb_to_recordset(returned) AS b(line_id text, quantity numeric)
                          GROUP BY user_id, order_no, line_id) AS part USING (user_id, order_no, line_id)) AS piece
      JOIN coupon_order o USING (user_id, order_no)
      LEFT JOIN (SELECT user_id, order_no, sum(refund_minor + discount_reversed_minor) AS worth
                   FROM coupon_refund GROUP BY user_id, order_no) AS r USING (user_id, order_no)
     GROUP BY user_id, order_no
    HAVING bool_or(sold IS NULL OR back > sold OR back < 0)
        OR bool_and(back = sold) <> (min(o.fully_returned_at) IS NOT NULL)
        OR sum(back * unit_price) IS DISTINCT FROM min(r.worth)
     ORDER BY user_id, order_no LIMIT :breach_limit
"""


def refund_money(services: Services) -> list[Breach]:
    """Orders whose refunds do not add up to their books, or return other pieces than were sold."""
    sums = [
        Breach(
            RULE,
            f"order {row.order_no} user {row.user_id}",
            f"{row.refunds} refunds of {row.refunded}, reversing {row.reversed}",
            "no order"
            if row.status is None
            else f"{row.status}: {row.refund_count} refunds of {row.refunded_minor}, at most {row.payable_minor};"
            f" reversed {row.used_reversed or 0} of {row.discount_minor}{_returned(row.fully_returned_at)}",
        )
        for row in rows(services, _SUMS)
    ]
    pieces = [
        Breach(
            RULE,
            f"order {row.order_no} user {row.user_id}",
            f"pieces that were sold, worth {row.worth or 0}",
            ("others" if row.beyond else "all" if row.all_back else "a part")
            + f", worth {row.gross or 0}{_returned(row.fully_returned_at)}",
        )
        for row in rows(services, _PIECES)
    ]
    return sums + pieces


def _returned(fully_returned_at: object) -> str:
    return "" if fully_returned_at is None else ", fully returned"
