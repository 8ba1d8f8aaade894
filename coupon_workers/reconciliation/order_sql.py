"""The SQL that compares a business day's orders with the order centre's statements (docs/reconciliation.md).

An order redeemed here belongs to the day of its bookings, and is judged with that day. The order centre may have it on
another one: clocks differ by seconds around midnight, and a payment may be heard late. So it is looked for from the day
before it was first locked or paid until the day after it was redeemed, and what the latest of these days says holds.
An order that is not redeemed here is judged with the day of the statement that has it, again the latest.

Everything is as of a moment: bookings, refunds, adjustments and statements bear their instants, and what a redeemed
order took off is frozen.
"""

from __future__ import annotations

from sqlalchemy import text

from coupon_workers.finance.finding_booking import books_finding_of

REACH_DAYS = 92
"""How far back an order's first lock is looked for in statements: no lock lives as long."""

BORDER_HOURS = 2
"""So close to midnight an order waits for the neighbour's statement before it is said to be in none."""

OVERDUE_DAYS = 3
"""For so long after its end a day's statement is waited for."""

_STATEMENTS = f"""
    SELECT DISTINCT ON (business_date) business_date, revision, row_count, received_at
      FROM order_statement
     WHERE business_date BETWEEN CAST(:day AS date) - {REACH_DAYS} AND CAST(:day AS date) + 1
       AND received_at <= :as_of
     ORDER BY business_date, revision DESC"""

_OURS = """
    SELECT user_id, order_no, max(t.timezone) AS timezone, min(template_id) AS template_id,
           max(template_id) AS last_template_id
      FROM ledger_entry JOIN coupon_template t USING (template_id)
     WHERE business_date = CAST(:day AS date) AND kind = 'redeem' AND at <= :as_of
     GROUP BY user_id, order_no"""

DAY = text(f"""
    WITH statement AS ({_STATEMENTS}), ours AS ({_OURS})
    SELECT s.revision, coalesce(s.row_count, 0) AS row_count, o.order_count,
           -- Whether every zone in which something was redeemed has left the day.
           coalesce(o.ends <= :as_of, FALSE) AS over,
           -- Whether what there was then has been forgotten.
           s.revision IS NULL AND coalesce(k.first_revision > 1, FALSE) AS forgotten
      FROM (SELECT count(*) AS order_count,
                   max(CAST(CAST(:day AS date) + 1 AS timestamp) AT TIME ZONE timezone) AS ends FROM ours) AS o
     CROSS JOIN (SELECT min(revision) AS first_revision FROM order_statement
                  WHERE business_date = CAST(:day AS date)) AS k
      LEFT JOIN statement s ON s.business_date = CAST(:day AS date)
""")

# LIMIT 1: each order is met by its key, whatever the statistics of a young table say.
REDEEMED = text(f"""
    WITH statement AS MATERIALIZED ({_STATEMENTS}), ours AS ({_OURS}), held AS (
        SELECT o.user_id, o.order_no, o.currency, o.discount_minor, o.payable_minor, o.redeemed_at, o.refund_count,
               coalesce(o.fully_returned_at <= :as_of, FALSE) AS fully_returned, o.fully_returned_at,
               CASE WHEN template_id = last_template_id THEN template_id END AS template_id,
               least(o.created_at, o.paid_at) AT TIME ZONE timezone AS begins,
               o.redeemed_at AT TIME ZONE timezone AS ends
          FROM ours
         CROSS JOIN LATERAL (SELECT * FROM coupon_order c
                              WHERE c.user_id = ours.user_id AND c.order_no = ours.order_no LIMIT 1) AS o
         WHERE o.redeemed_at <= :as_of AND NOT EXISTS (
            -- Of templates in several zones: the earliest day.
            SELECT FROM ledger_entry e
             WHERE e.user_id = ours.user_id AND e.order_no = ours.order_no AND e.kind = 'redeem'
               AND e.business_date < CAST(:day AS date))
    ), met AS (
        SELECT held.*, there.business_date, there.status, there.paid_minor AS paid_there,
               there.discount_minor AS discount_there, there.currency AS currency_there,
               coalesce(adjusted.minor, 0) AS adjusted_minor, coalesce(back.reversed_minor, 0) AS reversed_minor,
               CASE WHEN fully_returned THEN 2 WHEN back.count > 0 THEN 1 ELSE 0 END AS returned,
               -- A refund that was made after the statement came cannot be in it.
               CASE WHEN fully_returned_at <= there.received_at AND fully_returned THEN 2
                    WHEN back.count_then > 0 THEN 1 ELSE 0 END AS returned_then,
               CASE there.status WHEN 'refunded' THEN 2 WHEN 'partly_refunded' THEN 1 ELSE 0 END AS returned_there
          FROM held
          LEFT JOIN LATERAL (
            SELECT r.business_date, r.status, r.paid_minor, r.discount_minor, r.currency, s.received_at
              FROM statement s
              JOIN order_statement_row r ON r.business_date = s.business_date AND r.revision = s.revision
                                        AND r.user_id = held.user_id AND r.order_no = held.order_no
             WHERE s.business_date >= CAST(held.begins AS date) - 1
             ORDER BY s.business_date DESC LIMIT 1
          ) AS there ON TRUE
          LEFT JOIN LATERAL (
            SELECT count(*) AS count, count(*) FILTER (WHERE f.at <= there.received_at) AS count_then,
                   sum(f.discount_reversed_minor) AS reversed_minor
              FROM coupon_refund f
             WHERE f.user_id = held.user_id AND f.order_no = held.order_no AND f.at <= :as_of
          ) AS back ON held.refund_count > 0
          LEFT JOIN LATERAL (
            -- By the order's own bookings, and not through all adjustments there are.
            SELECT sum(CASE WHEN e.debit_account = 'coupon_expense' THEN e.amount_minor ELSE -e.amount_minor END)
                       FILTER (WHERE e.kind = 'adjustment' AND NOT {books_finding_of("state", "e")}) AS minor
              FROM ledger_entry e
             WHERE e.user_id = held.user_id AND e.order_no = held.order_no
               AND e.currency = held.currency AND e.at <= :as_of
          ) AS adjusted ON TRUE
    ), judged AS (
        SELECT *, CASE
                    WHEN status IS NULL OR status = 'closed' THEN CASE
                        WHEN fully_returned THEN NULL
                        WHEN status = 'closed' THEN 'redeemed_without_order'
                        WHEN NOT EXISTS (SELECT FROM statement WHERE business_date = CAST(:day AS date)) THEN NULL
                        WHEN EXISTS (
                            SELECT FROM generate_series(date_trunc('day', begins - INTERVAL '{BORDER_HOURS} hours'),
                                                        ends + INTERVAL '{BORDER_HOURS} hours', '1 day') AS awaited
                             WHERE CAST(awaited AS date) >= CAST(:day AS date) - {REACH_DAYS}
                               AND :as_of < CAST(awaited AS date) + {1 + OVERDUE_DAYS}
                               AND NOT EXISTS (SELECT FROM statement s WHERE s.business_date = CAST(awaited AS date)))
                            THEN 'waits'
                        ELSE 'redeemed_without_order' END
                    WHEN currency_there <> currency THEN 'currency_differs'
                    -- Returned whole on both sides it costs nothing there; here what was adjusted is left.
                    WHEN returned = 2 AND returned_there = 2 THEN
                        CASE WHEN adjusted_minor <> 0 THEN 'discount_differs' END
                    WHEN discount_there <> discount_minor + adjusted_minor THEN 'discount_differs'
                    -- An adjustment mends both amounts, or only one that the order centre had wrong.
                    WHEN paid_there NOT IN (payable_minor, payable_minor - adjusted_minor) THEN 'paid_differs'
               END AS finding_class,
               CASE WHEN status IS NULL OR status = 'closed' OR currency_there <> currency THEN NULL
                    WHEN returned_there > returned THEN 'refund_missing_here'
                    WHEN returned_there < returned_then THEN 'refund_missing_there'
               END AS refund_class
          FROM met
    )
    SELECT * FROM judged WHERE finding_class IS NOT NULL OR refund_class IS NOT NULL
     ORDER BY finding_class IS NOT DISTINCT FROM 'waits', user_id, order_no LIMIT :most
""")

UNREDEEMED = text(f"""
    WITH statement AS MATERIALIZED ({_STATEMENTS})
    SELECT r.user_id, r.order_no, r.business_date, r.status, r.paid_minor AS paid_there,
           r.discount_minor AS discount_there, r.currency AS currency_there,
           coalesce(o.created_at <= :as_of, FALSE) AS known
      FROM statement s
      JOIN order_statement_row r ON r.business_date = s.business_date AND r.revision = s.revision
      LEFT JOIN LATERAL (SELECT created_at, redeemed_at FROM coupon_order c
                          WHERE c.user_id = r.user_id AND c.order_no = r.order_no LIMIT 1) AS o ON TRUE
      LEFT JOIN LATERAL (
        SELECT TRUE AS found FROM statement next
          JOIN order_statement_row n ON n.business_date = next.business_date AND n.revision = next.revision
                                    AND n.user_id = r.user_id AND n.order_no = r.order_no
         WHERE next.business_date = CAST(:day AS date) + 1 LIMIT 1
      ) AS later ON TRUE
     WHERE s.business_date = CAST(:day AS date) AND r.discount_minor > 0 AND r.status IN ('paid', 'partly_refunded')
       AND (o.redeemed_at IS NULL OR o.redeemed_at > :as_of) AND later.found IS NULL
     ORDER BY r.user_id, r.order_no LIMIT :most
""")
