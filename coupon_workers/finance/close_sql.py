"""The statement that freezes a business day: counts of the coupons' flow, amounts of the ledger, from one snapshot."""

from __future__ import annotations

from sqlalchemy import text

STATEMENT_TIMEOUT_MS = 600_000
"""A day of ten million steps takes minutes; nobody waits for a close but who asked for it."""

# Partition by partition, so that a hash holds an eighth of the day's coupons at a time, and spills above this memory.
SETUP = f"""
    SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS};
    SET LOCAL enable_partitionwise_join = on;
    SET LOCAL enable_partitionwise_aggregate = on;
    SET LOCAL work_mem = '32MB';
    SET LOCAL jit = off;
    SET LOCAL enable_seqscan = on;
"""

# A received coupon is no issue: its unit was taken when the first one was (checking/issued_count.py).
FREEZE = text("""
    WITH booked AS (
        SELECT template_id, currency,
               coalesce(sum(amount_minor) FILTER (WHERE kind = 'redeem'), 0) AS redeemed_minor,
               coalesce(sum(amount_minor) FILTER (WHERE kind = 'refund'), 0) AS returned_minor,
               coalesce(sum(amount_minor) FILTER (WHERE kind = 'adjustment' AND debit_account = 'coupon_expense'), 0)
               - coalesce(sum(amount_minor) FILTER (WHERE kind = 'adjustment' AND credit_account = 'coupon_expense'), 0)
               AS adjusted_minor
          FROM ledger_entry WHERE business_date = :day
         GROUP BY template_id, currency
    ), moved AS (
        SELECT c.template_id,
               count(*) FILTER (WHERE f.action = 'issue') AS issued_count,
               sum(coalesce(c.face_value_minor, t.amount_minor)) FILTER (WHERE f.action = 'issue') AS issued_minor,
               count(*) FILTER (WHERE f.action = 'redeem') AS redeemed_count,
               count(*) FILTER (WHERE f.action = 'refund') AS returned_count,
               count(*) FILTER (WHERE f.action = 'expire') AS expired_count,
               sum(coalesce(c.face_value_minor, t.amount_minor)) FILTER (WHERE f.action = 'expire') AS expired_minor
          FROM coupon_flow f
          JOIN coupon c USING (user_id, coupon_id)
          JOIN coupon_template t ON t.template_id = c.template_id
         WHERE f.at >= :begins AND f.at < :ends
           AND f.action IN ('issue', 'redeem', 'refund', 'expire')
           AND CAST(f.at AT TIME ZONE t.timezone AS date) = :day
           AND NOT (f.action = 'issue' AND c.source = 'transfer')
         GROUP BY c.template_id
    )
    INSERT INTO daily_close_row (business_date, revision, template_id, currency, template_name, issued_count,
                                 issued_minor, redeemed_count, redeemed_minor, returned_count, returned_minor,
                                 expired_count, expired_minor, adjusted_minor, expense_minor)
    SELECT :day, :revision, template_id, currency, coalesce(t.name, ''),
           coalesce(issued_count, 0),
           CASE WHEN t.type = 'percent_off' THEN NULL ELSE coalesce(issued_minor, 0) END,
           coalesce(redeemed_count, 0), coalesce(redeemed_minor, 0),
           coalesce(returned_count, 0), coalesce(returned_minor, 0),
           coalesce(expired_count, 0),
           CASE WHEN t.type = 'percent_off' THEN NULL ELSE coalesce(expired_minor, 0) END,
           coalesce(adjusted_minor, 0),
           coalesce(redeemed_minor, 0) - coalesce(returned_minor, 0) + coalesce(adjusted_minor, 0)
      FROM (SELECT moved.*, o.currency FROM moved JOIN coupon_template o USING (template_id)) AS m
      FULL JOIN booked USING (template_id, currency)
      LEFT JOIN (SELECT template_id, name, type FROM coupon_template) AS t USING (template_id)
""")
