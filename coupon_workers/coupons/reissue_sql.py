"""The SQL of giving a user a coupon by hand: what there is of the request, and the one statement that issues it."""

from __future__ import annotations

from sqlalchemy import text

from coupon_workers.coupons.wallet_note import noted

SOURCE = "manual"
"""The ``source`` of a coupon that an operator gave, its ``batch_no``, and who triggered its first step. It takes a unit
of its template, and counts against nobody's limits."""

REQUEST_PREFIX = "manual\t"
"""Before the request's id, the coupon's ``request_id``. No claim's has a tab in it."""

REPLACES_PREFIX = "for "
"""Before the number of the coupon that it stands for, the ``batch_no`` of one that replaces another."""

REPLACES_ONCE = 1
"""The ``claim_seq`` of every coupon that replaces another: so the key of (user, template, batch, sequence) refuses a
second one."""

TURN = text("SELECT pg_advisory_xact_lock(hashtextextended('reissue ' || :user_id, 0))")
"""Reissues of one user take turns: a request, and a coupon that is replaced, are looked for across templates."""

KNOWN = text("""
    SELECT coupon_id, template_id, batch_no, request_id
      FROM (SELECT user_id, coupon_id, template_id, batch_no, request_id, source FROM coupon
             UNION ALL
            SELECT user_id, coupon_id, template_id, batch_no, request_id, source FROM coupon_archive) AS c
     WHERE user_id = :user_id AND source = 'manual' AND (request_id = :request_id OR batch_no = :replaces)
     ORDER BY request_id <> :request_id LIMIT 1
""")

REPLACED_ARCHIVED = text(
    "SELECT template_id, status, order_no, valid_to FROM coupon_archive"
    " WHERE user_id = :user_id AND coupon_id = :coupon_id"
)

# The template's row is held, and was looked at. Its version rises: the unit leaves the gate's stock with it.
ISSUE = text(f"""
    WITH books AS (
        UPDATE coupon_template
           SET issued_quantity = issued_quantity + 1, granted_quantity = granted_quantity + 1, version = version + 1,
               updated_at = :now
         WHERE template_id = :template_id AND issued_quantity + reserved_quantity < total_quantity
        RETURNING version
    ), issued AS (
        INSERT INTO coupon (user_id, coupon_id, template_id, batch_no, claim_seq, request_id, template_version,
                            valid_from, valid_to, source, claimed_at, issued_at)
        SELECT :user_id, :coupon_id, :template_id, :batch_no, :claim_seq, :request_id, version,
               timestamptz 'epoch' + :from_ms * interval '1 ms', timestamptz 'epoch' + :to_ms * interval '1 ms',
               '{SOURCE}', :now, :now
          FROM books
        RETURNING user_id, coupon_id
    ), flow AS (
        INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, request_id, at)
        SELECT user_id, coupon_id, 1, 'issue', 'unused', :operator, :asked_as, :now FROM issued
    ),{noted("issued")}, told AS (
        INSERT INTO outbox (event, user_id, template_id, coupon_id, created_at)
        SELECT 'coupon.issued', user_id, :template_id, coupon_id, :now FROM issued
    )
    SELECT count(*) FROM issued
""")
