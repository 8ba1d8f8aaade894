"""The SQL of giving a coupon away: one statement that ends the old coupon and issues the new one."""

from __future__ import annotations

from sqlalchemy import text

from coupon_workers.coupons.move_sql import recorded
from coupon_workers.coupons.transition import FlowAction
from coupon_workers.coupons.wallet_note import noted

SOURCE = "transfer"
"""The ``source`` and ``batch_no`` of a coupon that was given: it is not an issue of its template (its unit was taken
when the first coupon was), and counts against nobody's limits."""

REQUEST_PREFIX = "transfer\t"
"""Before the number of the coupon it comes from, the new coupon's ``request_id``. No claim's has a tab in it."""

# The row of the coupon is the only one that two transfers could both want: everything else is inserted under keys of
# its own, so that users who give to one another at the same time do not wait for each other in a circle.
TRANSFER = text(f"""
    WITH moved AS (
        UPDATE coupon AS given
           SET status = 'transferred', version = given.version + 1, updated_at = :now
          FROM coupon_template t
         WHERE given.user_id = :user_id AND given.coupon_id = :coupon_id
           AND given.status = 'unused' AND given.valid_to > :now
           AND t.template_id = given.template_id AND t.transferable
        RETURNING given.user_id, given.coupon_id, given.template_id, given.version, old.status AS before_status,
                  given.status, given.order_no, given.face_value_minor, given.template_version, given.valid_from,
                  given.valid_to
    ), {recorded(FlowAction.TRANSFER, "coupon.transferred")},
    received AS (
        INSERT INTO coupon (user_id, coupon_id, template_id, batch_no, claim_seq, request_id, face_value_minor,
                            template_version, valid_from, valid_to, source, claimed_at, issued_at, updated_at)
        SELECT :to_user_id, :to_coupon_id, template_id, '{SOURCE}', :to_coupon_id, '{REQUEST_PREFIX}' || coupon_id,
               face_value_minor, template_version, valid_from, valid_to, '{SOURCE}', :now, :now, :now
          FROM moved
        RETURNING user_id, coupon_id, template_id, request_id
    ), received_flow AS (
        INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, request_id, at)
        SELECT user_id, coupon_id, 1, 'issue', 'unused', '{SOURCE}', request_id, :now FROM received
    ),{noted("received", "received_noted")}, received_told AS (
        INSERT INTO outbox (event, user_id, template_id, coupon_id, created_at)
        SELECT 'coupon.issued', user_id, template_id, coupon_id, :now FROM received
    ), linked AS (
        INSERT INTO coupon_transfer (user_id, coupon_id, to_user_id, to_coupon_id, at)
        SELECT moved.user_id, moved.coupon_id, received.user_id, received.coupon_id, :now
          FROM moved CROSS JOIN received
    )
    SELECT count(*) FROM moved
""")

# What a transfer that moved nothing has met. Sent again years later it is answered as before.
PRESENT_STATE = text("""
    SELECT c.status, c.order_no, c.valid_to, t.transferable, link.to_user_id, link.to_coupon_id,
           c.status = 'unused' AND c.valid_to > :now AND t.transferable AS may_move
      FROM (SELECT user_id, coupon_id, template_id, status, order_no, valid_to FROM coupon
             UNION ALL
            SELECT user_id, coupon_id, template_id, status, order_no, valid_to FROM coupon_archive) AS c
      JOIN coupon_template t USING (template_id)
      LEFT JOIN coupon_transfer link ON link.user_id = :user_id AND link.coupon_id = c.coupon_id
     WHERE c.user_id = :user_id AND c.coupon_id = :coupon_id
""")
