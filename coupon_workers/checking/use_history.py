"""DESIGN 3.5, 3.6: what the history of a coupon says of orders is what became of it on each of them."""

from __future__ import annotations

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "use_history"

# A redemption that leaves ``locked`` ends the hold, as a release does; one that leaves ``unused`` was without a hold.
_DIFFERENT = """
    SELECT user_id, coupon_id, order_no, u.state, coalesce(f.held, 0) AS held, coalesce(f.redeems, 0) AS redeems,
           coalesce(f.refunds, 0) AS refunds
      FROM (SELECT user_id, coupon_id, order_no, count(*) AS moves,
                   count(*) FILTER (WHERE action = 'lock')
                   - count(*) FILTER (WHERE action = 'release' OR (action = 'redeem' AND from_status = 'locked'))
                   AS held,
                   count(*) FILTER (WHERE action = 'redeem') AS redeems,
                   count(*) FILTER (WHERE action = 'refund') AS refunds
              FROM coupon_flow WHERE action IN ('lock', 'release', 'redeem', 'refund')
             GROUP BY user_id, coupon_id, order_no) AS f
      FULL JOIN coupon_use u USING (user_id, coupon_id, order_no)
     WHERE u.state IS NULL OR f.moves IS NULL
        OR f.held <> CAST(u.state = 'locked' AS integer)
        OR f.redeems <> CAST(u.state IN ('redeemed', 'returned') AS integer)
        OR f.refunds <> CAST(u.state = 'returned' AS integer)
     ORDER BY user_id, coupon_id, order_no LIMIT :breach_limit
"""


def use_history(services: Services) -> list[Breach]:
    """Coupons whose history names an order that does not use them, or leaves their use elsewhere than it stands."""
    return [
        Breach(
            RULE,
            f"coupon {row.coupon_id} user {row.user_id} order {row.order_no}",
            f"a use that is {row.state}" if row.state else "a use by that order",
            f"{row.held} holds, {row.redeems} redemptions, {row.refunds} returns in its history",
        )
        for row in rows(services, _DIFFERENT)
    ]
