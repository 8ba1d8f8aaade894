"""The SQL of revoking coupons: the move, and the unit that goes back to the stock where the template says so."""

from __future__ import annotations

from sqlalchemy import text

from coupon_workers.coupons.move_sql import recorded
from coupon_workers.coupons.transfer_sql import REQUEST_PREFIX
from coupon_workers.coupons.transition import FlowAction

# Held before it is looked at: whoever has it in hand is waited for.
HOLD = text("""
    SELECT template_id, status, order_no, valid_to FROM coupon
     WHERE user_id = :user_id AND coupon_id = :coupon_id FOR NO KEY UPDATE
""")

# Whoever has a coupon in hand is not waited for: an order may hold several, in another order than this would take
# them. It is met again in the next pass. With these settings each coupon is found by its key, whatever statistics say.
REVOKE = text(f"""
    SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off;
    SET LOCAL enable_material = off;
    WITH wanted AS MATERIALIZED (
        SELECT c.user_id, c.coupon_id
          FROM unnest(CAST(:users AS text[]), CAST(:coupons AS bigint[])) AS w(user_id, coupon_id)
          JOIN coupon c ON c.user_id = w.user_id AND c.coupon_id = w.coupon_id
         WHERE c.status = 'unused' AND c.valid_to > :now
           FOR NO KEY UPDATE OF c SKIP LOCKED
    ), moved AS (
        UPDATE coupon AS c SET status = 'revoked', version = c.version + 1, updated_at = :now
          FROM wanted w
         WHERE c.user_id = w.user_id AND c.coupon_id = w.coupon_id AND c.status = 'unused'
        RETURNING c.user_id, c.coupon_id, c.template_id, c.version, old.status AS before_status, c.status, c.order_no
    ), {recorded(FlowAction.REVOKE, "coupon.revoked")},
    restocked AS (
        UPDATE coupon_template t
           SET issued_quantity = t.issued_quantity - m.units, restocked_quantity = t.restocked_quantity + m.units,
               version = t.version + 1, updated_at = :now
          FROM (SELECT template_id, count(*) AS units FROM moved GROUP BY template_id) AS m
         WHERE t.template_id = m.template_id AND t.restock_on_revoke
        RETURNING m.units
    )
    SELECT user_id, (SELECT coalesce(sum(units), 0) FROM restocked) AS restocked FROM moved
""")

# A coupon that was given away is a new one, and stands for an older one, which its request names: what it was issued
# as counts, and what is not here any more is in the archive, and old. Numbers are no measure of time: they may run
# ahead of the clock by seconds.
PAGE = text(f"""
    SELECT user_id, coupon_id, is_meant AND status = 'unused' AND valid_to > :now AS wanted,
           is_meant AND status = 'locked' AS held
      FROM (SELECT c.user_id, c.coupon_id, c.status, c.valid_to,
                   c.issued_at <= :asked_at OR c.source = 'transfer' AND NOT EXISTS (
                       WITH RECURSIVE given AS (
                           SELECT c.source, c.request_id, c.issued_at
                            UNION ALL
                           SELECT o.source, o.request_id, o.issued_at
                             FROM given JOIN coupon o
                               ON o.template_id = :template_id AND o.coupon_id = CASE given.source WHEN 'transfer'
                                  THEN CAST(substr(given.request_id, {len(REQUEST_PREFIX) + 1}) AS bigint) END
                       )
                       SELECT FROM given WHERE source <> 'transfer' AND issued_at > :asked_at
                   ) AS is_meant
              FROM coupon c
             WHERE c.template_id = :template_id AND c.coupon_id > :cursor
             ORDER BY c.coupon_id LIMIT :page) AS page
     ORDER BY coupon_id
""")
