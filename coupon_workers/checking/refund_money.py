"""DESIGN 3.7: refunds never exceed what was paid, and however an order is returned they sum to it."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "refund_money"

# Full joins and joins by a primary key stay fast whatever the statistics say: many tables here are young.
_SUMS = """
    SELECT user_id, order_no, o.status, o.payable_minor, o.discount_minor, o.refunded_minor, o.refund_count,
           o.fully_returned_at, coalesce(r.refunded, 0) AS refunded, coalesce(r.reversed, 0) AS reversed,
           coalesce(r.refunds, 0) AS refunds
      FROM (SELECT user_id, order_no, sum(refund_minor) AS refunded, sum(discount_reversed_minor) AS reversed,
                   count(*) AS refunds, max(refund_seq) AS last_seq
              FROM coupon_refund GROUP BY user_id, order_no) AS r
      FULL JOIN coupon_order o USING (user_id, order_no)
     WHERE o.status IS NULL
        OR o.refunded_minor <> coalesce(r.refunded, 0) OR o.refunded_minor > o.payable_minor
        OR coalesce(r.reversed, 0) > o.discount_minor
        OR o.refund_count <> coalesce(r.refunds, 0) OR o.refund_count <> coalesce(r.last_seq, 0)
        OR (o.refund_count > 0 AND o.status <> 'redeemed')
        OR (o.fully_returned_at IS NOT NULL
            AND (o.refunded_minor <> o.payable_minor OR coalesce(r.reversed, 0) <> o.discount_minor))
     ORDER BY user_id, order_no LIMIT :breach_limit
"""

_REVERSALS = """
    SELECT user_id, order_no, coalesce(r.reversed, 0) AS reversed, coalesce(u.reversed, 0) AS used_reversed
      FROM (SELECT user_id, order_no, sum(discount_reversed_minor) AS reversed
              FROM coupon_refund GROUP BY user_id, order_no) AS r
      FULL JOIN (SELECT user_id, order_no, sum(reversed_minor) AS reversed
                   FROM coupon_use GROUP BY user_id, order_no) AS u USING (user_id, order_no)
     WHERE coalesce(u.reversed, 0) <> coalesce(r.reversed, 0)
     ORDER BY user_id, order_no LIMIT :breach_limit
"""

# What goes back for a piece is its list price less the discount reversed with it: so refunds and reversals together
# are the list price of all that was returned.
_PIECES = """
    SELECT user_id, order_no, o.fully_returned_at, r.worth, piece.gross, piece.beyond, piece.all_back
      FROM (SELECT user_id, order_no, jsonb_agg(returned) AS parts,
                   sum(refund_minor + discount_reversed_minor) AS worth
              FROM coupon_refund GROUP BY user_id, order_no) AS r
      JOIN coupon_order o USING (user_id, order_no)
     CROSS JOIN LATERAL (
         SELECT bool_or(l.quantity IS NULL OR back > l.quantity OR back < 0) AS beyond,
                bool_and(coalesce(back, 0) = l.quantity) AS all_back, coalesce(sum(back * unit_price), 0) AS gross
           FROM jsonb_to_recordset(o.lines) AS l(line_id text, unit_price numeric, quantity numeric)
           FULL JOIN (SELECT line_id, sum(quantity) AS back
                        FROM jsonb_array_elements(r.parts) AS part,
                             jsonb_to_recordset(part) AS b(line_id text, quantity numeric)
                       GROUP BY line_id) AS b USING (line_id)) AS piece
     WHERE piece.beyond OR piece.all_back <> (o.fully_returned_at IS NOT NULL) OR piece.gross <> r.worth
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
            else f"{row.status}: {row.refund_count} refunds of {row.refunded_minor}, at most {row.payable_minor}"
            f" and {row.discount_minor}{_returned(row.fully_returned_at)}",
        )
        for row in rows(services, _SUMS)
    ]
    reversals = [
        Breach(
            RULE,
            f"order {row.order_no} user {row.user_id}",
            f"{row.reversed} of its discount reversed",
            f"{row.used_reversed}",
        )
        for row in rows(services, _REVERSALS)
    ]
    pieces = [
        Breach(
            RULE,
            f"order {row.order_no} user {row.user_id}",
            f"pieces that were sold, worth {row.worth}",
            ("others" if row.beyond else "all" if row.all_back else "a part")
            + f", worth {row.gross}{_returned(row.fully_returned_at)}",
        )
        for row in rows(services, _PIECES)
    ]
    return sums + reversals + pieces


def _returned(fully_returned_at: object) -> str:
    return "" if fully_returned_at is None else ", fully returned"
