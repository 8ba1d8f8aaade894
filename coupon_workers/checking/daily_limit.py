"""DESIGN 3.4: a user claims at most ``per_user_daily_limit`` coupons of a template in one of its local days."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "daily_limit"

# The day is the template's (CASES 34), by the gate's clock: that is the one that allowed the claim. A coupon
# received from another user is no claim.
_BEYOND = """
    SELECT c.template_id, c.user_id, CAST(c.claimed_at AT TIME ZONE t.timezone AS date) AS day, count(*) AS held,
           t.per_user_daily_limit
      FROM coupon c
      JOIN coupon_template t USING (template_id)
     WHERE t.per_user_daily_limit IS NOT NULL AND c.source NOT IN ('transfer', 'lottery', 'manual')
     GROUP BY c.user_id, c.template_id, day, t.per_user_daily_limit
    HAVING count(*) > t.per_user_daily_limit
     ORDER BY c.template_id, c.user_id, day LIMIT :breach_limit
"""


def daily_limit(services: Services) -> list[Breach]:
    """Users with more coupons of one local day of a template than it allows."""
    return [
        Breach(
            RULE,
            f"template {row.template_id} user {row.user_id} day {row.day}",
            f"at most {row.per_user_daily_limit} coupons",
            f"{row.held}",
        )
        for row in rows(services, _BEYOND)
    ]
