"""DESIGN 3.3: one request has one effect, and one claim ends in one way."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "one_effect"

# A rejection as DUPLICATE is how a second effect was refused; it is not one itself.
_SAME_REQUEST = """
    SELECT template_id, user_id, request_id, count(*) AS effects
      FROM (SELECT template_id, user_id, request_id FROM coupon
             UNION ALL
            SELECT template_id, user_id, request_id FROM coupon_archive
             UNION ALL
            SELECT template_id, user_id, request_id FROM claim_rejection WHERE reason <> 'DUPLICATE'
             UNION ALL
            SELECT template_id, user_id, request_id FROM risk_review WHERE state = 'held') AS effect
     GROUP BY user_id, template_id, request_id
    HAVING count(*) > 1
     ORDER BY template_id, user_id, request_id LIMIT :breach_limit
"""

_SAME_CLAIM = """
    SELECT r.claim_id, r.user_id, r.reason
      FROM claim_rejection r
      JOIN coupon c ON c.user_id = r.user_id AND c.coupon_id = r.claim_id
     UNION ALL
    SELECT r.claim_id, r.user_id, r.reason
      FROM claim_rejection r
      JOIN coupon_archive c ON c.user_id = r.user_id AND c.coupon_id = r.claim_id
     ORDER BY claim_id LIMIT :breach_limit
"""

# Whatever a gate may have forgotten of it.
_NO_END = """
    SELECT r.claim_id, r.user_id, r.state
      FROM risk_review r
     WHERE r.state <> 'held'
       AND NOT EXISTS (SELECT FROM coupon c WHERE c.user_id = r.user_id AND c.coupon_id = r.claim_id)
       AND NOT EXISTS (SELECT FROM coupon_archive c WHERE c.user_id = r.user_id AND c.coupon_id = r.claim_id)
       AND NOT EXISTS (SELECT FROM claim_rejection c WHERE c.user_id = r.user_id AND c.claim_id = r.claim_id)
     ORDER BY r.claim_id LIMIT :breach_limit
"""


def one_effect(services: Services) -> list[Breach]:
    """Requests with several effects, claims that were issued and rejected, and claims whose review ended in neither."""
    doubled = [
        Breach(
            RULE,
            f"template {row.template_id} user {row.user_id} request {row.request_id}",
            "one effect",
            f"{row.effects}",
        )
        for row in rows(services, _SAME_REQUEST)
    ]
    torn = [
        Breach(RULE, f"claim {row.claim_id} user {row.user_id}", "one end", f"issued and rejected {row.reason}")
        for row in rows(services, _SAME_CLAIM)
    ]
    lost = [
        Breach(RULE, f"claim {row.claim_id} user {row.user_id}", "one end", f"none, as its review is {row.state}")
        for row in rows(services, _NO_END)
    ]
    return doubled + torn + lost
