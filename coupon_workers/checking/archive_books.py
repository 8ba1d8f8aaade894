"""DESIGN 10: what was archived is counted once, whole, and of coupons and templates that are over for good."""

from __future__ import annotations

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.flow_history import broken_histories
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "archive_books"

# Other rules count the living coupons and add these counters.
_OF_TEMPLATES = """
    SELECT template_id, coalesce(t.archived_quantity, 0) AS archived_quantity,
           coalesce(t.archived_granted_quantity, 0) AS archived_granted_quantity,
           coalesce(a.issued, 0) AS issued, coalesce(a.granted, 0) AS granted
      FROM coupon_template t
      FULL JOIN (SELECT template_id, count(*) FILTER (WHERE source <> 'transfer') AS issued,
                        count(*) FILTER (WHERE source IN ('batch', 'code', 'lottery', 'manual')) AS granted
                   FROM coupon_archive GROUP BY template_id) AS a USING (template_id)
     WHERE (coalesce(t.archived_quantity, 0), coalesce(t.archived_granted_quantity, 0))
           <> (coalesce(a.issued, 0), coalesce(a.granted, 0))
     ORDER BY template_id LIMIT :breach_limit
"""

_OF_BATCHES = """
    SELECT batch_no, coalesce(b.archived_count, 0) AS booked, coalesce(a.coupons, 0) AS coupons
      FROM (SELECT CAST(batch_id AS text) AS batch_no, archived_count FROM issue_batch) AS b
      FULL JOIN (SELECT batch_no, count(*) AS coupons FROM coupon_archive WHERE source = 'batch'
                  GROUP BY batch_no) AS a USING (batch_no)
     WHERE coalesce(b.archived_count, 0) <> coalesce(a.coupons, 0)
     ORDER BY batch_no LIMIT :breach_limit
"""

_TWICE = """
    SELECT user_id, coupon_id, c.status FROM coupon_archive JOIN coupon c USING (user_id, coupon_id)
     ORDER BY user_id, coupon_id LIMIT :breach_limit
"""

_ON_ORDERS = """
    SELECT user_id, coupon_id, u.order_no FROM coupon_archive JOIN coupon_use u USING (user_id, coupon_id)
     ORDER BY user_id, coupon_id LIMIT :breach_limit
"""

# The gate counts a user's coupons, and nobody counts those of the archive: nothing may be issued beside them.
_ISSUED_SINCE = """
    SELECT c.template_id, c.user_id, c.coupon_id, c.issued_at, a.since
      FROM (SELECT template_id, min(archived_at) AS since FROM coupon_archive WHERE source <> 'transfer'
             GROUP BY template_id) AS a
      JOIN coupon c USING (template_id)
     WHERE c.issued_at > a.since AND c.source <> 'transfer'
     ORDER BY c.template_id, c.coupon_id LIMIT :breach_limit
"""


def archive_books(services: Services) -> list[Breach]:
    """Counters that are not those of the archive; coupons in it that are elsewhere too, were on an order, or whose
    history does not lead to where they ended; coupons issued of a template after its first was archived."""
    return [
        *_templates(services),
        *_batches(services),
        *_coupons(services),
        *broken_histories(services, RULE, coupon="coupon_archive", flow="coupon_flow_archive"),
        *_issued_since(services),
    ][:BREACH_LIMIT]


def _templates(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"template {row.template_id}",
            f"{row.issued} archived, {row.granted} of them given by batches, codes and prizes",
            f"archived_quantity {row.archived_quantity}, archived_granted_quantity {row.archived_granted_quantity}",
        )
        for row in rows(services, _OF_TEMPLATES)
    ]


def _batches(services: Services) -> list[Breach]:
    return [
        Breach(RULE, f"batch {row.batch_no}", f"{row.coupons} archived", f"archived_count {row.booked}")
        for row in rows(services, _OF_BATCHES)
    ]


def _coupons(services: Services) -> list[Breach]:
    twice = [
        Breach(RULE, f"coupon {row.coupon_id} user {row.user_id}", "one row", f"archived, and {row.status} beside it")
        for row in rows(services, _TWICE)
    ]
    on_orders = [
        Breach(RULE, f"coupon {row.coupon_id} user {row.user_id}", "never on an order", f"on order {row.order_no}")
        for row in rows(services, _ON_ORDERS)
    ]
    return twice + on_orders


def _issued_since(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"coupon {row.coupon_id} user {row.user_id} template {row.template_id}",
            f"nothing issued after {row.since}, when the first was archived",
            f"issued at {row.issued_at}",
        )
        for row in rows(services, _ISSUED_SINCE)
    ]
