"""DESIGN 3.7: the ledger has each redeemed discount once, and each reversal; beside them only traced adjustments."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.finance.finding_booking import books_finding_of
from coupon_workers.runtime.services import Services

RULE = "ledger_use"

_DIFFERENT = f"""
    SELECT user_id, order_no, coupon_id, u.state, o.currency,
           CASE WHEN u.state IN ('redeemed', 'returned') THEN u.discount_minor ELSE 0 END AS redeemed,
           coalesce(u.reversed_minor, 0) AS reversed,
           coalesce(l.redeemed, 0) AS booked, coalesce(l.refunded, 0) AS booked_back, l.currencies
      FROM (SELECT user_id, order_no, coupon_id, min(template_id) AS template_id, max(template_id) AS last_template_id,
                   sum(amount_minor) FILTER (WHERE kind = 'redeem') AS redeemed,
                   sum(amount_minor) FILTER (WHERE kind = 'refund') AS refunded,
                   count(*) FILTER (WHERE kind = 'adjustment') AS adjusted,
                   sum(CASE 'coupon_expense' WHEN debit_account THEN amount_minor ELSE - amount_minor END)
                       FILTER (WHERE NOT {books_finding_of("orders", "e")}) AS net,
                   array_agg(DISTINCT currency) AS currencies
              FROM ledger_entry e GROUP BY user_id, order_no, coupon_id) AS l
      FULL JOIN coupon_use u USING (user_id, order_no, coupon_id)
      LEFT JOIN coupon_order o USING (user_id, order_no)
     WHERE (CASE WHEN u.state IN ('redeemed', 'returned') THEN u.discount_minor ELSE 0 END <> coalesce(l.redeemed, 0)
            OR coalesce(u.reversed_minor, 0) <> coalesce(l.refunded, 0))
           -- What was not booked when it happened, and was made up for.
           AND NOT (coalesce(l.adjusted, 0) > 0
                    AND coalesce(l.net, 0) = CASE WHEN u.state IN ('redeemed', 'returned') THEN u.discount_minor
                                                  ELSE 0 END - coalesce(u.reversed_minor, 0))
        -- Of an order that is not known here there may be adjustments, and nothing else.
        OR ((o.currency IS NOT NULL OR l.redeemed > 0) AND l.currencies <> ARRAY[o.currency])
        OR l.template_id <> u.template_id OR l.last_template_id <> u.template_id
     ORDER BY user_id, order_no, coupon_id LIMIT :breach_limit
"""

_ILL_FORMED = """
    SELECT entry_id, kind, debit_account, credit_account, e.amount_minor, business_date,
           CAST(at AT TIME ZONE t.timezone AS date) AS day
      FROM ledger_entry e
      LEFT JOIN coupon_template t USING (template_id)
     WHERE (kind = 'redeem' AND (debit_account, credit_account) <> ('coupon_expense', 'order_discount'))
        OR (kind = 'refund' AND (debit_account, credit_account) <> ('order_discount', 'coupon_expense'))
        OR (kind = 'adjustment' AND (debit_account, credit_account)
            NOT IN (('coupon_expense', 'adjustment'), ('adjustment', 'coupon_expense')))
        OR e.amount_minor < 1 OR debit_account = credit_account
        OR (kind = 'adjustment') <> (operator IS NOT NULL) OR (kind = 'adjustment') <> (reason IS NOT NULL)
        OR (kind IN ('redeem', 'refund')
            AND business_date IS DISTINCT FROM CAST(at AT TIME ZONE t.timezone AS date))
        -- Where that day was closed it is the next open one.
        OR (kind = 'adjustment' AND coalesce(business_date < CAST(at AT TIME ZONE t.timezone AS date), TRUE))
     ORDER BY entry_id LIMIT :breach_limit
"""

# The coupon may be in the archive: it was on no order that is known here.
_FOREIGN = """
    SELECT entry_id, e.user_id, e.coupon_id, e.template_id, e.currency, c.template_id AS of_template, t.currency AS due
      FROM ledger_entry e
      LEFT JOIN LATERAL (SELECT template_id FROM coupon
                          WHERE user_id = e.user_id AND coupon_id = e.coupon_id
                          UNION ALL
                         SELECT template_id FROM coupon_archive
                          WHERE user_id = e.user_id AND coupon_id = e.coupon_id) AS c ON true
      LEFT JOIN coupon_template t ON t.template_id = c.template_id
     WHERE e.kind = 'adjustment'
       AND (e.template_id IS DISTINCT FROM c.template_id OR e.currency IS DISTINCT FROM t.currency)
     ORDER BY entry_id LIMIT :breach_limit
"""


def ledger_use(services: Services) -> list[Breach]:
    """Coupons on orders whose bookings are not their discount and its reversal, and bookings that are ill-formed.

    A coupon's bookings then never net below zero: no more of a discount is reversed than it is.
    """
    different = [
        Breach(
            RULE,
            f"order {row.order_no} user {row.user_id} coupon {row.coupon_id}",
            f"{row.redeemed} less {row.reversed} {row.currency}, as the use is {row.state or 'not there'}",
            f"{row.booked} less {row.booked_back} {' '.join(row.currencies or ())}",
        )
        for row in rows(services, _DIFFERENT)
    ]
    ill_formed = [
        Breach(
            RULE,
            f"entry {row.entry_id}",
            f"a traced {row.kind} on its accounts, of {row.day}",
            f"{row.amount_minor} from {row.debit_account} to {row.credit_account}, of {row.business_date}",
        )
        for row in rows(services, _ILL_FORMED)
    ]
    foreign = [
        Breach(
            RULE,
            f"entry {row.entry_id}",
            f"an adjustment of template {row.of_template} in {row.due}, as coupon {row.coupon_id} of {row.user_id} is",
            f"template {row.template_id} in {row.currency}",
        )
        for row in rows(services, _FOREIGN)
    ]
    return different + ill_formed + foreign
