"""DESIGN 3.2: ``rejected_quantity`` of a template is the number of its rejected claims."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "rejected_count"

_DIFFERENT = """
    SELECT t.template_id, t.rejected_quantity AS booked, coalesce(r.rejected, 0) AS counted
      FROM coupon_template t
      LEFT JOIN (SELECT template_id, count(*) AS rejected FROM claim_rejection GROUP BY template_id) AS r
           USING (template_id)
     WHERE t.rejected_quantity <> coalesce(r.rejected, 0)
     ORDER BY t.template_id LIMIT :breach_limit
"""


def rejected_count(services: Services) -> list[Breach]:
    """Templates whose book of rejected claims and whose rows differ."""
    return [
        Breach(RULE, f"template {row.template_id}", f"rejected_quantity {row.counted}", f"{row.booked}")
        for row in rows(services, _DIFFERENT)
    ]
