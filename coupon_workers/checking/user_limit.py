"""DESIGN 3.4: a user has at most ``per_user_limit`` coupons of a template, beside those other users gave him."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "user_limit"

_BEYOND = """
    SELECT c.template_id, c.user_id, c.held, t.per_user_limit
      FROM (SELECT user_id, template_id, count(*) AS held FROM coupon
             WHERE source NOT IN ('transfer', 'lottery', 'manual')
             GROUP BY user_id, template_id
            HAVING count(*) > (SELECT coalesce(min(per_user_limit), 1) FROM coupon_template)) AS c
      JOIN coupon_template t USING (template_id)
     WHERE c.held > t.per_user_limit
     ORDER BY c.template_id, c.user_id LIMIT :breach_limit
"""


def user_limit(services: Services) -> list[Breach]:
    """Users with more coupons of a template than it allows; one given away still counts, one received does not."""
    return [
        Breach(
            RULE,
            f"template {row.template_id} user {row.user_id}",
            f"at most {row.per_user_limit} coupons",
            f"{row.held}",
        )
        for row in rows(services, _BEYOND)
    ]
