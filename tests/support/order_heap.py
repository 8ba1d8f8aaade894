"""Orders by the thousand, put into the database by SQL: for sweeps and for plans."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import Any

from sqlalchemy import text

from tests.support.order_shop import OrderShop

APART = 10**10
"""Between the numbers of one heap's coupons and the next one's."""

_HEAPS = count(1)

COUPONS = """
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, status, version, order_no,
                        template_version, valid_from, valid_to, source, claimed_at)
    SELECT 'u' || n % :users, :base + n, :template, 1000 + n, CAST(:name AS text) || n, CAST(:status AS text),
           CASE WHEN :status = 'unused' THEN 1 ELSE 2 END,
           CASE WHEN :status <> 'unused' THEN CAST(:name AS text) || n END, 1, :start, :ends, 'claim', :start
      FROM generate_series(1, :count) AS n"""

FLOW = """
    INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, from_status, to_status, order_no, operator)
    SELECT c.user_id, c.coupon_id, 1, 'issue', NULL, 'unused', NULL, 'claim'
      FROM coupon c WHERE c.coupon_id > :base AND c.coupon_id <= :base + :count
     UNION ALL
    SELECT c.user_id, c.coupon_id, 2, 'lock', 'unused', 'locked', c.order_no, 'key:orders'
      FROM coupon c WHERE c.coupon_id > :base AND c.coupon_id <= :base + :count AND c.status = 'locked'"""

ORDERS = """
    INSERT INTO coupon_order (user_id, order_no, status, fingerprint, currency, lines, subtotal_minor, discount_minor,
                              payable_minor, locked_at, locked_until, released_at, created_at, updated_at)
    SELECT 'u' || n % :users, CAST(:name AS text) || n, CAST(:order_status AS text), '\\x00', 'CNY',
           '[{"line_id": "1", "product_id": "p1", "category_id": null, "unit_price": 10000, "quantity": 1}]',
           10000, 2000, 8000, :start, :until, CASE WHEN :order_status = 'released' THEN CAST(:until AS timestamptz) END,
           :start, :start
      FROM generate_series(1, :count) AS n"""

USES = """
    INSERT INTO coupon_use (user_id, order_no, coupon_id, template_id, state, position, discount_minor, allocations)
    SELECT 'u' || n % :users, CAST(:name AS text) || n, :base + n, :template, CAST(:order_status AS text), 0, 2000,
           '[{"line_id": "1", "amount": 2000}]'
      FROM generate_series(1, :count) AS n"""


def heap(
    shop: OrderShop, orders: int, *, status: str, until: datetime, users: int | None = None, name: str = "heap-"
) -> int:
    """So many orders, each with a coupon that it holds (``locked``) or has let go (``released``) at ``until``; of
    ``users`` users, or of one each; their numbers begin with ``name``. The template's identity."""
    template = shop.template(total_quantity=orders, issued_quantity=orders)
    named: dict[str, Any] = {
        "count": orders,
        "users": users or orders,
        "name": name,
        "base": shop.services.next_id(0) + next(_HEAPS) * APART,
        "template": template,
        "status": "locked" if status == "locked" else "unused",
        "order_status": status,
        "until": until,
        "start": until - timedelta(minutes=15),
        "ends": until + timedelta(days=7),
    }
    with shop.services.engine.begin() as connection:
        for statement in (COUPONS, FLOW, ORDERS, USES):
            connection.execute(text(statement), named)
    return template
