"""DESIGN 3.1: for each template the issued rows do not exceed the total, whatever Redis says."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "never_over_issued"

_SURPLUS = """
    SELECT c.template_id, c.issued + coalesce(t.archived_quantity, 0) AS issued,
           coalesce(t.total_quantity + t.restocked_quantity, 0) AS total
      FROM (SELECT template_id, count(*) AS issued FROM coupon WHERE source <> 'transfer' GROUP BY template_id) AS c
      LEFT JOIN coupon_template t USING (template_id)
     WHERE c.issued + coalesce(t.archived_quantity, 0) > coalesce(t.total_quantity + t.restocked_quantity, 0)
     ORDER BY c.template_id LIMIT :breach_limit
"""


def never_over_issued(services: Services) -> list[Breach]:
    """Templates with more coupons than their total; a template that does not exist has a total of 0.

    A coupon received from another user is no issue: its unit was taken when the first one was. The unit of a revoked
    coupon that went back to the stock may be issued once more. Archived ones are counted by ``archived_quantity``
    (``archive_books``).
    """
    return [
        Breach(RULE, f"template {row.template_id}", f"at most {row.total} coupons", f"{row.issued}")
        for row in rows(services, _SURPLUS)
    ]
