"""DESIGN 3.7 and 10: what was closed is what the ledger and the coupons' history say, to the last unit."""

from __future__ import annotations

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "closed_day"

_FROZEN = """
    SELECT r.* FROM daily_close_row r
      JOIN daily_close d USING (business_date, revision) WHERE d.status = 'closed'
"""

# Debits less credits of the one account: written apart from the close, which goes by the kind of each booking.
_MONEY = f"""
    SELECT business_date, template_id, currency, r.expense_minor, r.redeemed_minor, r.returned_minor,
           coalesce(l.expense, 0) AS expense, coalesce(l.redeemed, 0) AS redeemed, coalesce(l.returned, 0) AS returned
      FROM (SELECT business_date, template_id, currency,
                   sum(CASE WHEN debit_account = 'coupon_expense' THEN amount_minor ELSE 0 END
                       - CASE WHEN credit_account = 'coupon_expense' THEN amount_minor ELSE 0 END) AS expense,
                   sum(CASE WHEN kind = 'redeem' THEN amount_minor ELSE 0 END) AS redeemed,
                   sum(CASE WHEN kind = 'refund' THEN amount_minor ELSE 0 END) AS returned
              FROM ledger_entry
             WHERE business_date IN (SELECT business_date FROM daily_close WHERE status = 'closed')
             GROUP BY business_date, template_id, currency) AS l
      FULL JOIN ({_FROZEN}) AS r USING (business_date, template_id, currency)
     WHERE (r.expense_minor, r.redeemed_minor, r.returned_minor)
           IS DISTINCT FROM (coalesce(l.expense, 0), coalesce(l.redeemed, 0), coalesce(l.returned, 0))
     ORDER BY business_date, template_id, currency LIMIT :breach_limit
"""

_STEPS = """SELECT c.template_id, c.source, f.action, f.at
                      FROM {flow} f JOIN {coupon} c USING (user_id, coupon_id)
                     WHERE f.at >= (SELECT min(business_date) - 1 FROM daily_close WHERE status = 'closed')
                       AND f.at < (SELECT max(business_date) + 2 FROM daily_close WHERE status = 'closed')"""

# Nothing is read when nothing is closed: a local day lies within a day of UTC's. OFFSET and LIMIT:
# as in finance/close_sql.py.
_COUNTS = f"""
    SELECT business_date, template_id, r.issued, r.redeemed, r.returned, r.expired,
           coalesce(f.issued, 0) AS flow_issued, coalesce(f.redeemed, 0) AS flow_redeemed,
           coalesce(f.returned, 0) AS flow_returned, coalesce(f.expired, 0) AS flow_expired
      FROM (SELECT CAST(step.at AT TIME ZONE t.timezone AS date) AS business_date, template_id,
                   sum(CASE WHEN action = 'issue' AND source <> 'transfer' THEN 1 ELSE 0 END) AS issued,
                   sum(CASE WHEN action = 'redeem' THEN 1 ELSE 0 END) AS redeemed,
                   sum(CASE WHEN action = 'refund' THEN 1 ELSE 0 END) AS returned,
                   sum(CASE WHEN action = 'expire' THEN 1 ELSE 0 END) AS expired
              FROM ({_STEPS.format(flow="coupon_flow", coupon="coupon")} UNION ALL
                    {_STEPS.format(flow="coupon_flow_archive", coupon="coupon_archive")}
                    OFFSET 0) AS step
              JOIN LATERAL (SELECT timezone FROM coupon_template o
                             WHERE o.template_id = step.template_id LIMIT 1) AS t ON TRUE
             WHERE CAST(step.at AT TIME ZONE t.timezone AS date)
                   IN (SELECT business_date FROM daily_close WHERE status = 'closed')
             GROUP BY 1, 2) AS f
      FULL JOIN (SELECT business_date, template_id, sum(issued_count) AS issued, sum(redeemed_count) AS redeemed,
                        sum(returned_count) AS returned, sum(expired_count) AS expired
                   FROM ({_FROZEN}) AS frozen GROUP BY business_date, template_id) AS r
           USING (business_date, template_id)
     WHERE (coalesce(r.issued, 0), coalesce(r.redeemed, 0), coalesce(r.returned, 0), coalesce(r.expired, 0))
           <> (coalesce(f.issued, 0), coalesce(f.redeemed, 0), coalesce(f.returned, 0), coalesce(f.expired, 0))
     ORDER BY business_date, template_id LIMIT :breach_limit
"""


def closed_day(services: Services) -> list[Breach]:
    """Days in force whose rows are not the sums of the ledger, or not the counts of the coupons' history."""
    money = [
        Breach(
            RULE,
            f"day {row.business_date} template {row.template_id}",
            f"{row.redeemed} less {row.returned}, in all {row.expense} {row.currency}, by the ledger",
            f"{row.redeemed_minor} less {row.returned_minor}, in all {row.expense_minor}",
        )
        for row in rows(services, _MONEY)
    ]
    counts = [
        Breach(
            RULE,
            f"day {row.business_date} template {row.template_id}",
            f"{row.flow_issued} issued, {row.flow_redeemed} redeemed, {row.flow_returned} returned,"
            f" {row.flow_expired} expired, by their history",
            f"{row.issued}, {row.redeemed}, {row.returned}, {row.expired}",
        )
        for row in rows(services, _COUNTS)
    ]
    return [*money, *counts][:BREACH_LIMIT]
