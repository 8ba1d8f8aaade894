"""The SQL of archiving: which templates are due, and the one statement that moves a chunk of a template's coupons."""

from __future__ import annotations

from sqlalchemy import text

from coupon_workers.coupons.source_sql import GRANTED
from coupon_workers.coupons.wallet_note import noted
from coupon_workers.schema import Coupon, CouponFlow
from coupon_workers.schema.coupon_archive import ENDED_STATUSES

_ENDED = ", ".join(f"'{status}'" for status in ENDED_STATUSES)
_COUPON = ", ".join(column.name for column in Coupon.__table__.columns)
_FLOW = ", ".join(column.name for column in CouponFlow.__table__.columns)

# A reading of all templates, once a turn: they are few.
SCANS_ALLOWED = text("SET LOCAL enable_seqscan = on")

# While units are set aside, coupons of the template may yet be issued, and what its users have is counted. A template
# that was changed lately may have been open until then: its gate, and what waits in it, is given time to go.
_OVER = (
    "t.claim_end <= :before AND t.updated_at <= :unchanged_since AND t.issued_quantity > 0 AND t.reserved_quantity = 0"
)

DUE = text(f"""
    SELECT t.template_id FROM coupon_template t LEFT JOIN archive_pass p USING (template_id)
     WHERE {_OVER} AND (p.due_from IS NULL OR p.cursor > 0 OR p.due_from <= :before)
     ORDER BY t.claim_end, t.template_id LIMIT :most
""")

# Held, so that nobody puts claim_end off meanwhile; under the lock of its bucket, so that neither settling nor a
# preheat counts coupons that are on their way.
HOLD = text(f"""
    SELECT pg_try_advisory_xact_lock(:lock) FROM coupon_template t
     WHERE t.template_id = :template_id AND {_OVER}
       FOR NO KEY UPDATE SKIP LOCKED
""")

# Asked when the template is held: another worker may have come further, or to the end.
PLACE = text("""
    SELECT cursor, oldest_left FROM archive_pass
     WHERE template_id = :template_id AND (cursor > 0 OR due_from <= :before)
     UNION ALL
    SELECT 0, NULL WHERE NOT EXISTS (SELECT FROM archive_pass WHERE template_id = :template_id)
""")

# Each coupon and each step is then found by its key, and a page is read in the order of its index up to its end,
# whatever the statistics say (coupons/expiry.py). Else each page may be sorted out of all that the template has.
BY_KEYS = text("""
    SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off;
    SET LOCAL enable_material = off;
    SET LOCAL enable_bitmapscan = off;
    SET LOCAL enable_sort = off;
""")

# A coupon that has ended never changes again, and one that was never on an order never comes to be: what the page says
# of them stays true. ``free``: may be moved, once it is old enough; LIMIT, as for EXISTS all uses there are may be read
# into a hash. Whatever else is left has its whole time before it, from now on; one that somebody looks at with a lock
# is due as it was.
MOVE = text(f"""
    WITH page AS MATERIALIZED (
        SELECT c.user_id, c.coupon_id, c.updated_at,
               c.status IN ({_ENDED}) AND c.order_no IS NULL
               AND (SELECT u.order_no FROM coupon_use u
                     WHERE u.user_id = c.user_id AND u.coupon_id = c.coupon_id LIMIT 1) IS NULL AS free
          FROM coupon c
         WHERE c.template_id = :template_id AND c.coupon_id > :cursor
         ORDER BY c.coupon_id LIMIT :chunk
    ), ripe AS MATERIALIZED (
        SELECT c.user_id, c.coupon_id FROM page JOIN coupon c USING (user_id, coupon_id)
         WHERE page.free AND page.updated_at <= :before AND c.status IN ({_ENDED})
           FOR UPDATE OF c SKIP LOCKED
    ), moved AS (
        DELETE FROM coupon c USING ripe WHERE c.user_id = ripe.user_id AND c.coupon_id = ripe.coupon_id
        RETURNING c.*
    ),{noted("moved")}, kept AS (
        INSERT INTO coupon_archive ({_COUPON}, archived_at) SELECT {_COUPON}, :now FROM moved
    ), steps AS (
        DELETE FROM coupon_flow f USING ripe WHERE f.user_id = ripe.user_id AND f.coupon_id = ripe.coupon_id
        RETURNING f.*
    ), kept_steps AS (
        INSERT INTO coupon_flow_archive ({_FLOW}, archived_at) SELECT {_FLOW}, :now FROM steps
    ), counts AS (
        SELECT count(*) AS moved, count(*) FILTER (WHERE source <> 'transfer') AS issued,
               count(*) FILTER (WHERE {GRANTED}) AS granted
          FROM moved
    ), template AS (
        UPDATE coupon_template t
           SET archived_quantity = archived_quantity + issued,
               archived_granted_quantity = archived_granted_quantity + granted
          FROM counts WHERE t.template_id = :template_id AND issued > 0
    ), batches AS (
        UPDATE issue_batch b SET archived_count = archived_count + n.coupons
          FROM (SELECT CAST(batch_no AS bigint) AS batch_id, count(*) AS coupons FROM moved
                 WHERE source = 'batch' GROUP BY batch_no) AS n
         WHERE b.batch_id = n.batch_id
    ), found AS (
        SELECT count(*) AS looked_at, max(coupon_id) AS last,
               count(*) FILTER (WHERE free AND updated_at <= :before) AS old,
               min(CASE WHEN NOT free THEN CAST(:now AS timestamptz)
                        WHEN updated_at > :before THEN updated_at END) AS oldest_left
          FROM page
    )
    SELECT looked_at, last, moved, CASE WHEN moved < old THEN :before ELSE oldest_left END AS oldest_left,
           ARRAY(SELECT DISTINCT user_id FROM moved) AS users
      FROM found CROSS JOIN counts
""")

# Until a pass has come to its end, what the last one left is due as it was.
NOTE = text("""
    INSERT INTO archive_pass AS p (template_id, cursor, oldest_left, due_from, updated_at)
    VALUES (:template_id, :cursor, :oldest_left, :due_from, :now)
    ON CONFLICT (template_id) DO UPDATE
       SET cursor = excluded.cursor, oldest_left = excluded.oldest_left,
           due_from = coalesce(excluded.due_from, p.due_from), updated_at = excluded.updated_at
""")
