"""Coupons by the million, written by SQL as settling would have written them."""

from __future__ import annotations

from contextlib import closing

from bench.world import World

CHUNK = 200_000

# Users in no order, as they come: an index on them is filled everywhere at once.
_USER = "'u-' || substr(md5(n::text), 1, 16)"

_COUPONS = f"""
INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                    source, channel, claimed_at)
SELECT {_USER}, n, %(template_id)s, 1, 'order-form-' || n, 1, now(), now() + interval '7 days', 'claim', 'app', now()
  FROM generate_series(%(first)s, %(last)s) AS n;
INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, request_id)
SELECT {_USER}, n, 1, 'issue', 'unused', 'claim', 'order-form-' || n
  FROM generate_series(%(first)s, %(last)s) AS n;
UPDATE coupon_template SET issued_quantity = %(last)s WHERE template_id = %(template_id)s
"""


_OTHERS = f"""
INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                    source, channel, claimed_at)
SELECT {_USER}, n, %(template_id)s, 1, 'order-form-' || n, 1, now(), now() + interval '7 days', 'claim', 'app', now()
  FROM generate_series(%(first)s, %(last)s) AS n
"""


def fill_others(world: World, template_id: int, count: int) -> None:
    """Put ``count`` coupons of others into the table, without their history."""
    with closing(world.connect()) as connection:
        for first in range(1, count + 1, CHUNK):
            with connection, connection.cursor() as cursor:
                last = min(first + CHUNK - 1, count)
                cursor.execute(_OTHERS, {"template_id": template_id, "first": first, "last": last})
    world.execute("VACUUM (ANALYZE) coupon")


def fill_outstanding(world: World, template_id: int, count: int) -> None:
    """Give the template ``count`` issued coupons, numbered from 1, and leave the tables vacuumed and analysed."""
    with closing(world.connect()) as connection:
        for first in range(1, count + 1, CHUNK):
            with connection, connection.cursor() as cursor:
                last = min(first + CHUNK - 1, count)
                cursor.execute(_COUPONS, {"template_id": template_id, "first": first, "last": last})
    # Else autovacuum would come in the midst of what is measured.
    for table in ("coupon", "coupon_flow", "coupon_template"):
        world.execute(f"VACUUM (ANALYZE) {table}")
