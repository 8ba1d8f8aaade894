"""DESIGN 11: a pool is its template's budget, shared out; what it has issued is what the coupons are worth."""

from __future__ import annotations

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "pool_books"

_SHARED_OUT = """
    SELECT t.template_id, t.total_quantity, (t.pool ->> 'budget')::bigint AS budget,
           coalesce(sum(p.quantity), 0) AS count, coalesce(sum(p.quantity * p.amount_minor), 0) AS sum,
           coalesce(bool_and(p.amount_minor BETWEEN (t.pool ->> 'min')::bigint AND (t.pool ->> 'max')::bigint), true)
           AS within
      FROM coupon_template t LEFT JOIN pool_value p USING (template_id)
     WHERE t.type = 'random_amount'
       AND (t.status NOT IN ('draft', 'pending_approval', 'archived') OR t.issued_quantity > 0)
     GROUP BY t.template_id
    HAVING coalesce(sum(p.quantity), 0) <> t.total_quantity
        OR coalesce(sum(p.quantity * p.amount_minor), 0) <> (t.pool ->> 'budget')::bigint
        OR NOT bool_and(p.amount_minor BETWEEN (t.pool ->> 'min')::bigint AND (t.pool ->> 'max')::bigint)
     ORDER BY t.template_id LIMIT :breach_limit
"""

# A coupon of a random amount without one is counted under no amount, of which a pool has none.
_ISSUED = """
    SELECT template_id, amount, coalesce(p.issued_quantity, 0) AS booked, coalesce(c.issued, 0) AS counted
      FROM (SELECT template_id, amount_minor AS amount, issued_quantity FROM pool_value WHERE issued_quantity > 0) AS p
      FULL JOIN (SELECT c.template_id, coalesce(c.face_value_minor, 0) AS amount, count(*) AS issued
                   FROM (SELECT template_id, face_value_minor, source FROM coupon UNION ALL
                         SELECT template_id, face_value_minor, source FROM coupon_archive) AS c
                   JOIN coupon_template t USING (template_id)
                  WHERE t.type = 'random_amount' AND c.source <> 'transfer'
                  GROUP BY 1, 2) AS c USING (template_id, amount)
     WHERE coalesce(p.issued_quantity, 0) <> coalesce(c.issued, 0)
     ORDER BY template_id, amount LIMIT :breach_limit
"""


def pool_books(services: Services) -> list[Breach]:
    """Pools that are not their template's budget in so many values within their bounds, and amounts that were issued
    more or less often than the pool says."""
    breaches = [
        Breach(
            RULE,
            f"template {row.template_id}",
            f"{row.total_quantity} values within their bounds that sum to {row.budget}",
            f"{row.count} that sum to {row.sum}" + ("" if row.within else ", some out of bounds"),
        )
        for row in rows(services, _SHARED_OUT)
    ]
    breaches += [
        Breach(
            RULE, f"template {row.template_id} amount {row.amount}", f"{row.booked} issued", f"{row.counted} coupons"
        )
        for row in rows(services, _ISSUED)
    ]
    return breaches[:BREACH_LIMIT]
