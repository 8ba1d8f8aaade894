"""The plans of settling: served by the users' indexes, whatever the statistics say of the template."""

from __future__ import annotations

from contextlib import closing

from sqlalchemy import text

from coupon_workers.claiming import issue_sql, settle_sql
from coupon_workers.claiming.pending import read_pending
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.services import Services
from tests.support.sale import open_sale


def test_a_template_the_statistics_do_not_know_is_not_gone_through_for_each_user(services: Services) -> None:
    """The table was analysed when another template filled it: the new one looks like a template of one coupon."""
    known = open_sale(services, total_quantity=9_000)
    known.claim_each(f"u{number}" for number in range(8_000))
    known.drain()
    with services.engine.begin() as connection:
        connection.execute(text("ANALYZE coupon"))
    new = open_sale(services, template_id=7_002, total_quantity=500, per_user_limit=1)
    new.claim_each(f"u{number}" for number in range(200))
    claims, _ = read_pending(services.redis, new.keys, 200)

    engine = make_engine(services.settings)  # whose connections have prepared nothing yet
    with engine.begin() as connection, closing(connection.connection.cursor()) as cursor:
        template = settle_sql.lock_template(connection, new.template_id, 0)
        assert template is not None
        statement = issue_sql.issue_all_of(template)
        cursor.execute(statement.prepare)
        cursor.execute(f"EXPLAIN {statement.call}", settle_sql._arguments(template, claims))
        plan = "\n".join(row[0] for row in cursor.fetchall())
    engine.dispose()

    assert "Index Scan" in plan
    assert "template_id_coupon_id_idx" not in plan
