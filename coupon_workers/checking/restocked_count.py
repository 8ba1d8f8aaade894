"""DESIGN 7: the unit of a revoked coupon goes back to the stock once where its template says so, and else never."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "restocked_count"

_DIFFERENT = """
    SELECT t.template_id, t.restocked_quantity AS booked, coalesce(c.revoked, 0) AS counted
      FROM coupon_template t
      LEFT JOIN (SELECT template_id, count(*) AS revoked
                   FROM (SELECT template_id FROM coupon WHERE status = 'revoked'
                          UNION ALL SELECT template_id FROM coupon_archive WHERE status = 'revoked') AS ended
                  GROUP BY template_id) AS c USING (template_id)
     WHERE t.restocked_quantity <> CASE WHEN t.restock_on_revoke THEN coalesce(c.revoked, 0) ELSE 0 END
     ORDER BY t.template_id LIMIT :breach_limit
"""


def restocked_count(services: Services) -> list[Breach]:
    """Templates whose book of units that went back differs from their revoked coupons."""
    return [
        Breach(
            RULE, f"template {row.template_id}", f"{row.counted} revoked, all back or none", f"{row.booked} went back"
        )
        for row in rows(services, _DIFFERENT)
    ]
