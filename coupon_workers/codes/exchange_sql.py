"""The SQL of an exchange: what is known of a code, and the one statement that uses it and issues its coupon."""

from __future__ import annotations

from sqlalchemy import text

from coupon_workers.coupons.source_sql import COUNTED
from coupon_workers.coupons.wallet_note import noted
from coupon_workers.runtime.prepared_statement import PreparedStatement

REQUEST_PREFIX = "code\t"
"""Before the request's id, the coupon's ``request_id``. No claim's has a tab in it."""

_STATE = """
    c.code_hash, c.user_id, c.request_id, c.coupon_id, b.code_batch_id, b.template_id, b.status AS batch_status,
           b.channel, coalesce(b.expires_at, t.claim_end) AS expires_at, t.status, t.claim_start, t.claim_end,
           t.version, t.validity, t.timezone, t.per_user_limit, t.per_user_daily_limit
      FROM code c JOIN code_batch b USING (code_batch_id) JOIN coupon_template t USING (template_id)"""

# One question and one plan for every code, there or not, so that no time tells which it is.
LOOK = PreparedStatement(
    "code_look",
    f"""
    SELECT true AS asked, {_STATE}
     WHERE c.code_hash = ANY (:hashes)
    UNION ALL
    SELECT false AS asked, {_STATE}
     WHERE c.user_id = :user_id AND c.request_id = :request_id AND c.code_hash <> ALL (:hashes)
    """,
    hashes="bytea[]",
    user_id="text",
    request_id="text",
)

# In this order, as everywhere: code, batch, template.
HOLD = text(
    f"SELECT true AS asked, {_STATE} WHERE c.code_hash = :code_hash"
    " FOR NO KEY UPDATE OF c FOR NO KEY UPDATE OF b FOR NO KEY UPDATE OF t"
)

# "+ 0" as in settling: of a new template the statistics know nothing. What other users gave a user
# is not counted, nor what he won.
HELD = text(
    f"""
    SELECT count(*) AS coupons,
           count(*) FILTER (WHERE CAST(claimed_at AT TIME ZONE :timezone AS date)
                                  = CAST(CAST(:now AS timestamptz) AT TIME ZONE :timezone AS date)) AS today,
           coalesce(max(claim_seq) FILTER (WHERE batch_no = :batch_no), 0) AS last_seq
      FROM coupon c
     WHERE c.user_id = :user_id AND c.template_id + 0 = :template_id
       AND {COUNTED}
    """
)

# The rows of the code, its batch and its template are held, and were looked at.
USE = text(
    f"""
    WITH batch AS (
        UPDATE code_batch SET used_count = used_count + 1, left_quantity = left_quantity - 1, updated_at = :now
         WHERE code_batch_id = :code_batch_id AND status = 'done'
        RETURNING used_count
    ), used AS (
        UPDATE code SET user_id = :user_id, request_id = :request_id, coupon_id = :coupon_id, used_at = :now,
               use_no = batch.used_count
          FROM batch WHERE code_hash = :code_hash AND code.user_id IS NULL
        RETURNING code.use_no
    ), issued AS (
        INSERT INTO coupon (user_id, coupon_id, template_id, batch_no, claim_seq, request_id, template_version,
                            valid_from, valid_to, source, channel, claimed_at, issued_at)
        SELECT :user_id, :coupon_id, :template_id, :batch_no, :claim_seq, '{REQUEST_PREFIX}' || :request_id, :version,
               timestamptz 'epoch' + :from_ms * interval '1 ms', timestamptz 'epoch' + :to_ms * interval '1 ms',
               'code', CAST(:channel AS text), :now, :now
          FROM used
        RETURNING user_id, coupon_id
    ), flow AS (
        INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, request_id, at)
        SELECT user_id, coupon_id, 1, 'issue', 'unused', 'code', :request_id, :now FROM issued
    ),{noted("issued")}, told AS (
        INSERT INTO outbox (event, user_id, template_id, coupon_id, created_at)
        SELECT 'coupon.issued', user_id, :template_id, coupon_id, :now FROM issued
    ), books AS (
        UPDATE coupon_template
           SET issued_quantity = issued_quantity + 1, reserved_quantity = reserved_quantity - 1,
               granted_quantity = granted_quantity + 1
          FROM issued WHERE template_id = :template_id
        RETURNING 1
    )
    SELECT (SELECT use_no FROM used) AS use_no, (SELECT count(*) FROM books) AS booked
    """
)
