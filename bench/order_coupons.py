"""Wallets by SQL: users with coupons that were issued a moment ago, as settling would have written them."""

from __future__ import annotations

from bench.sale import open_sale
from bench.world import World

FIRST_COUPON = 1_000_000_000_000

_COUPONS = """
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                        source, channel, claimed_at)
    SELECT 'u-' || %(mark)s || '-' || lpad(n::text, 7, '0'), %(first)s + n + m * %(users)s, %(template_id)s, m + 1,
           'order-form-' || n || '-' || m, 1, now(), now() + interval '7 days', 'claim', 'app', now()
      FROM generate_series(0, %(users)s - 1) AS n, generate_series(0, %(each)s - 1) AS m;
    INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, request_id)
    SELECT user_id, coupon_id, 1, 'issue', 'unused', 'claim', request_id
      FROM coupon WHERE template_id = %(template_id)s
"""


def fill_wallets(world: World, mark: str, users: int, *, each: int) -> None:
    """Give each user of a load (see ``asked.user_of``) ``each`` coupons of a new template, the first of user ``n``
    numbered ``FIRST_COUPON + n``; the tables are vacuumed and analysed."""
    sale = open_sale(world)
    world.execute(
        _COUPONS,
        {"mark": mark, "first": FIRST_COUPON, "users": users, "each": each, "template_id": sale.template_id},
    )
    world.execute(
        "UPDATE coupon_template SET issued_quantity = %(count)s WHERE template_id = %(id)s",
        {"count": users * each, "id": sale.template_id},
    )
    for table in ("coupon", "coupon_flow", "coupon_template"):
        world.execute(f"VACUUM (ANALYZE) {table}")
