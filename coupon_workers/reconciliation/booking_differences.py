"""What the ledger has of each coupon on an order, against what the order was less (DESIGN 3.7)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from coupon_workers.finance.finding_booking import books_finding_of
from coupon_workers.reconciliation.difference import Difference
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.state_case import StateCase, order_subject

# ``net``: what the coupon has cost by the ledger, with what was adjusted, but for what a statement led to.
_DIFFERENT = text(f"""
    SELECT user_id, order_no, coupon_id, coalesce(u.template_id, l.template_id) AS template_id,
           coalesce(o.currency, l.currency) AS currency, l.currencies, u.state,
           CASE WHEN u.state IN ('redeemed', 'returned') THEN u.discount_minor ELSE 0 END AS redeemed,
           coalesce(u.reversed_minor, 0) AS reversed, coalesce(l.redeemed, 0) AS booked,
           coalesce(l.reversed, 0) AS booked_back, coalesce(l.net, 0) AS net, coalesce(l.adjusted, 0) AS adjusted,
           greatest(o.updated_at, l.last_at) AS moved_at
      FROM (SELECT user_id, order_no, coupon_id, min(template_id) AS template_id, min(currency) AS currency,
                   count(DISTINCT currency) AS currencies, max(at) AS last_at,
                   sum(amount_minor) FILTER (WHERE kind = 'redeem') AS redeemed,
                   sum(amount_minor) FILTER (WHERE kind = 'refund') AS reversed,
                   count(*) FILTER (WHERE kind = 'adjustment') AS adjusted,
                   sum(CASE 'coupon_expense' WHEN debit_account THEN amount_minor
                                             WHEN credit_account THEN - amount_minor ELSE 0 END)
                       FILTER (WHERE NOT {books_finding_of("orders", "e")}) AS net
              FROM ledger_entry e GROUP BY user_id, order_no, coupon_id) AS l
      FULL JOIN coupon_use u USING (user_id, order_no, coupon_id)
      LEFT JOIN coupon_order o USING (user_id, order_no)
     WHERE CASE WHEN u.state IN ('redeemed', 'returned') THEN u.discount_minor ELSE 0 END <> coalesce(l.redeemed, 0)
        OR coalesce(u.reversed_minor, 0) <> coalesce(l.reversed, 0)
     ORDER BY user_id, order_no, coupon_id LIMIT :most
""")


def find_booking_differences(case: StateCase) -> None:
    """``booking_missing``: nothing is booked of a discount, or of what was taken back; else ``booking_differs``."""
    rows = case.connection.execute(_DIFFERENT, {"most": case.room}).all()
    # A booking that went to another order is two: each order's money is one's own.
    for row in [row for row in rows if not case.knows_coupon(row.user_id, row.coupon_id)]:
        missing = int(row.redeemed - row.reversed - row.net)
        if row.adjusted and not missing:
            continue
        subject = f"{order_subject(row.user_id, row.order_no)} coupon {row.coupon_id}"
        if row.moved_at is not None and row.moved_at > case.as_of:
            case.unjudged.add(subject)
        else:
            case.add(_difference(row, subject, missing))


def _difference(row: Any, subject: str, missing: int) -> Difference:
    absent = (row.redeemed and not row.booked) or (row.reversed and not row.booked_back)
    certain = row.currency is not None and row.currencies in (None, 1)
    return Difference(
        finding_class="booking_missing" if absent else "booking_differs",
        subject=subject,
        evidence={
            "use": row.state,
            "discount_minor": int(row.redeemed),
            "reversed_minor": int(row.reversed),
            "booked_minor": int(row.booked),
            "booked_back_minor": int(row.booked_back),
            "net_minor": int(row.net),
            "missing_minor": missing,
        },
        repair=RepairName.BOOK_ADJUSTMENT if missing and certain else None,
        amount_minor=abs(missing) if certain else None,
        currency=row.currency if certain else None,
        template_id=row.template_id,
        user_id=row.user_id,
        order_no=row.order_no,
        coupon_id=row.coupon_id,
    )
