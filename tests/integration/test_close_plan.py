"""The plan of a day's close, in a table of a hundred thousand coupons."""

from __future__ import annotations

import re
from datetime import date

from sqlalchemy import text

from coupon_workers.finance.business_day import day_span
from coupon_workers.finance.close_sql import FREEZE, SETUP
from coupon_workers.runtime.services import Services
from coupon_workers.schema.base import PARTITIONS
from tests.support.closing import ClosingShop

DAY = "2026-11-11"
LATER = "2026-11-20T12:00+08:00"
MANY_COUPONS = """
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                        source, claimed_at, issued_at)
    SELECT 'u' || n, n, :template, 1, 'r', 1, at, at + INTERVAL '90 days', 'claim', at, at
      FROM (SELECT n, CAST('2026-08-01T00:00Z' AS timestamptz) + n * INTERVAL '100 seconds' AS at
              FROM generate_series(1, 100000) AS n) AS made
"""
MANY_STEPS = """
    INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, at)
    SELECT user_id, coupon_id, 1, 'issue', 'unused', 'claim', issued_at FROM coupon ORDER BY coupon_id
"""


def test_a_day_is_read_by_the_blocks_it_lies_in(services: Services) -> None:
    """However much history there is: by the index of instants, partition by partition."""
    shop = ClosingShop(services)
    template = shop.template(total_quantity=100_000, issued_quantity=100_000)
    shop.execute(MANY_COUPONS, template=template)
    shop.execute(MANY_STEPS)
    shop.execute("ANALYZE coupon, coupon_flow, coupon_template")

    with shop.services.engine.begin() as connection:
        span = day_span(connection, date.fromisoformat(DAY))
        connection.exec_driver_sql(SETUP)
        named = {"day": DAY, "revision": 1, "begins": span.begins, "ends": span.ends}
        plan = "\n".join(connection.scalars(text(f"EXPLAIN {FREEZE.text}"), named))

    assert PARTITIONS == len(re.findall(r"Bitmap Index Scan on coupon_flow_p\d_at_idx", plan)), plan
    assert not re.search(r"Seq Scan on coupon_flow", plan), plan
    [row] = shop.at(LATER).close(DAY).rows
    assert shop.rows(
        "SELECT count(*) FROM coupon_flow WHERE at >= '2026-11-10T16:00Z' AND at < '2026-11-11T16:00Z'"
    ) == [(row.issued_count,)]
