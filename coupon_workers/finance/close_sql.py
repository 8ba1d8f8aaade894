"""The statement that freezes a business day: counts of the coupons' flow, amounts of the ledger, from one snapshot."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import TextClause, text

from coupon_workers.runtime.settings import LEAST_ARCHIVE_DAYS

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

NOTHING_ARCHIVED = timedelta(days=LEAST_ARCHIVE_DAYS - 1)
"""A step that is younger lies in no archive, whatever the setting, and on whichever host's clock."""

_STEPS = """
                SELECT c.template_id, c.face_value_minor, f.action, f.at
                  FROM {flow} f JOIN {coupon} c USING (user_id, coupon_id)
                 WHERE f.at >= :begins AND f.at < :ends
                   AND f.action IN ('issue', 'redeem', 'refund', 'expire')
                   AND NOT (f.action = 'issue' AND c.source = 'transfer')"""
_LIVING = _STEPS.format(flow="coupon_flow", coupon="coupon")
_ALL = f"{_LIVING} UNION ALL {_STEPS.format(flow='coupon_flow_archive', coupon='coupon_archive')}"

# A received coupon is no issue: its unit was taken when the first one was (checking/issued_count.py).
# OFFSET and LIMIT: each step meets its coupon, then its template, by their keys. Else a plan of poor estimates tries
# every step with every template's time zone.
_FREEZE = """
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
        SELECT template_id, t.currency,
               count(*) FILTER (WHERE action = 'issue') AS issued_count,
               sum(coalesce(face_value_minor, amount_minor)) FILTER (WHERE action = 'issue') AS issued_minor,
               count(*) FILTER (WHERE action = 'redeem') AS redeemed_count,
               count(*) FILTER (WHERE action = 'refund') AS returned_count,
               count(*) FILTER (WHERE action = 'expire') AS expired_count,
               sum(coalesce(face_value_minor, amount_minor)) FILTER (WHERE action = 'expire') AS expired_minor
          FROM (STEPS
                OFFSET 0) AS step
          JOIN LATERAL (SELECT timezone, currency, amount_minor FROM coupon_template o
                         WHERE o.template_id = step.template_id LIMIT 1) AS t ON TRUE
         WHERE CAST(step.at AT TIME ZONE t.timezone AS date) = :day
         GROUP BY template_id, t.currency
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
      FROM moved
      FULL JOIN booked USING (template_id, currency)
      LEFT JOIN (SELECT template_id, name, type FROM coupon_template) AS t USING (template_id)
"""

FREEZE, FREEZE_OLD = text(_FREEZE.replace("STEPS", _LIVING)), text(_FREEZE.replace("STEPS", _ALL))


def freeze_of(ends: datetime, now: datetime) -> TextClause:
    """The statement for a day that ``ends`` then: an old one, closed late or anew, is read from the archive too."""
    return FREEZE if ends > now - NOTHING_ARCHIVED else FREEZE_OLD
