"""DESIGN 5: ``issued_quantity`` of a template is the number of its coupon rows, received ones left out, without those
whose unit went back to the stock.

A coupon received from another user is no issue: its unit was taken when the first one was. Those in the archive are
counted by ``archived_quantity``, which ``archive_books`` holds against their rows."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "issued_count"

_DIFFERENT = """
    SELECT t.template_id, t.issued_quantity AS booked,
           coalesce(c.issued, 0) + t.archived_quantity - t.restocked_quantity AS counted
      FROM coupon_template t
      LEFT JOIN (SELECT template_id, count(*) AS issued FROM coupon WHERE source <> 'transfer'
                  GROUP BY template_id) AS c USING (template_id)
     WHERE t.issued_quantity + t.restocked_quantity <> coalesce(c.issued, 0) + t.archived_quantity
     ORDER BY t.template_id LIMIT :breach_limit
"""


def issued_count(services: Services) -> list[Breach]:
    """Templates whose book of issued coupons and whose rows differ."""
    return [
        Breach(RULE, f"template {row.template_id}", f"issued_quantity {row.counted}", f"{row.booked}")
        for row in rows(services, _DIFFERENT)
    ]
