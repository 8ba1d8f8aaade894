"""A shop's years in little: coupons of many templates, used and unused, with all that belongs to them, sound."""

from __future__ import annotations

from contextlib import closing

from bench.world import World

CHUNK = 200_000

TEMPLATES = 20
"""One of them is warm: most coupons that are outstanding are of sales that are over."""

_USER = "'u-' || substr(md5(n::text), 1, 16)"
_TEMPLATE = f"%(template_id)s + n %% {TEMPLATES}"
_REDEEMED = "n %% 10 = 3"
_EXPIRED = "n %% 20 = 6"
_RANGE = "generate_series(%(first)s, %(last)s) AS n"

_MORE_TEMPLATES = f"""
INSERT INTO coupon_template
SELECT (jsonb_populate_record(t, jsonb_build_object('template_id', t.template_id + n,
                                                    'template_no', t.template_no || '-' || n))).*
  FROM coupon_template t, generate_series(1, {TEMPLATES - 1}) AS n WHERE t.template_id = %(template_id)s
"""

# A coupon in ten was locked, then redeemed by an order; one in twenty has run out.
_FILL = f"""
INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, status, version, order_no,
                    template_version, valid_from, valid_to, source, channel, claimed_at)
SELECT {_USER}, n, {_TEMPLATE}, 1, 'order-form-' || n,
       CASE WHEN {_REDEEMED} THEN 'redeemed' WHEN {_EXPIRED} THEN 'expired' ELSE 'unused' END,
       CASE WHEN {_REDEEMED} THEN 3 WHEN {_EXPIRED} THEN 2 ELSE 1 END,
       CASE WHEN {_REDEEMED} THEN 'order-' || n END,
       1, now() - interval '1 day', now() + interval '7 days', 'claim', 'app', now()
  FROM {_RANGE};
INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, from_status, to_status, order_no, operator)
SELECT {_USER}, n, step, CASE step WHEN 1 THEN 'issue' WHEN 3 THEN 'redeem'
                                   ELSE CASE WHEN {_REDEEMED} THEN 'lock' ELSE 'expire' END END,
       CASE step WHEN 2 THEN 'unused' WHEN 3 THEN 'locked' END,
       CASE step WHEN 1 THEN 'unused' WHEN 3 THEN 'redeemed'
                 ELSE CASE WHEN {_REDEEMED} THEN 'locked' ELSE 'expired' END END,
       CASE WHEN {_REDEEMED} AND step > 1 THEN 'order-' || n END, 'bench'
  FROM {_RANGE}
  JOIN generate_series(1, 3) AS step
       ON step <= CASE WHEN {_REDEEMED} THEN 3 WHEN {_EXPIRED} THEN 2 ELSE 1 END;
INSERT INTO coupon_order (user_id, order_no, status, fingerprint, currency, lines, subtotal_minor, discount_minor,
                          payable_minor, locked_at, locked_until, payment_no, paid_at, redeemed_at, created_at,
                          updated_at)
SELECT {_USER}, 'order-' || n, 'redeemed', '\\x00', 'CNY',
       '[{{"line_id": "1", "product_id": "p1", "category_id": "c1", "unit_price": 10000, "quantity": 1}}]', 10000,
       2000, 8000, now(), now(), 'pay-' || n, now(), now(), now(), now()
  FROM {_RANGE} WHERE {_REDEEMED};
INSERT INTO coupon_use (user_id, order_no, coupon_id, template_id, state, position, discount_minor, allocations)
SELECT {_USER}, 'order-' || n, n, {_TEMPLATE}, 'redeemed', 0, 2000, '[{{"line_id": "1", "amount": 2000}}]'
  FROM {_RANGE} WHERE {_REDEEMED};
INSERT INTO ledger_entry (user_id, order_no, coupon_id, template_id, kind, reference, debit_account, credit_account,
                          amount_minor, currency, business_date, at)
SELECT {_USER}, 'order-' || n, n, {_TEMPLATE}, 'redeem', 'pay-' || n, 'coupon_expense', 'order_discount', 2000, 'CNY',
       CAST(now() AT TIME ZONE 'Asia/Shanghai' AS date), now()
  FROM {_RANGE} WHERE {_REDEEMED}
"""

_BOOKS = """
UPDATE coupon_template t SET issued_quantity = c.issued
  FROM (SELECT template_id, count(*) AS issued FROM coupon GROUP BY template_id) AS c
 WHERE c.template_id = t.template_id
"""

TABLES = ("coupon", "coupon_flow", "coupon_order", "coupon_use", "ledger_entry", "coupon_template")


def fill_sound(world: World, template_id: int, count: int) -> None:
    """Give the template and its like ``count`` coupons, and leave the tables vacuumed and analysed."""
    world.execute(_MORE_TEMPLATES, {"template_id": template_id})
    with closing(world.connect()) as connection:
        for first in range(1, count + 1, CHUNK):
            with connection, connection.cursor() as cursor:
                last = min(first + CHUNK - 1, count)
                cursor.execute(_FILL, {"template_id": template_id, "first": first, "last": last})
    world.execute(_BOOKS)
    for table in TABLES:
        world.execute(f"VACUUM (ANALYZE) {table}")
