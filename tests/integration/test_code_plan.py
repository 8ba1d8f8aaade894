"""The plans of an exchange: by indexes, a handful of rows, among two hundred thousand codes and coupons."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Engine, text

from coupon_workers.codes.code_generation import run_generation
from coupon_workers.codes.code_sweep import sweep_codes
from coupon_workers.codes.exchange import Exchange, exchange_code
from coupon_workers.errors import NotFound
from coupon_workers.runtime.services import Services
from tests.support.code_batch import plan_codes
from tests.support.sale import open_sale

MANY = 200_000
TRIES = 20
_READ = text("""
    SELECT t.relname, coalesce(t.seq_scan, 0) AS scans,
           (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes i WHERE i.relid = t.relid) AS entries
      FROM pg_stat_user_tables t WHERE t.relname ~ '^(coupon_p?[0-9]+|code)$'
""")


@pytest.mark.parametrize("analyzed", [False, True])
def test_an_exchange_reads_as_many_rows_as_it_needs(services: Services, one_connection: Engine, analyzed: bool) -> None:
    """A right code and a wrong one; with statistics of a full table or without."""
    ours = replace(services, engine=one_connection)
    sale = open_sale(ours, total_quantity=MANY * 3, per_user_limit=3)
    desk = plan_codes(sale, MANY)
    run_generation(ours, desk.code_batch_id, turn_s=3_600)
    desk.fetch()
    with ours.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(
            text(
                "INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version,"
                " valid_from, valid_to, source, claimed_at) SELECT 'u' || n, n, :id, 1, 'early', 1, now(),"
                " now() + interval '7 days', 'claim', now() FROM generate_series(1, :many) AS n"
            ),
            {"id": sale.template_id, "many": MANY},
        )
        if analyzed:
            connection.execute(text("ANALYZE code, code_batch, coupon, coupon_template"))
    before = _reading(ours)

    for n in range(TRIES):
        exchange_code(ours, Exchange(desk.codes[n], f"u{n + 1}", "r1"))
        with pytest.raises(NotFound):
            exchange_code(ours, Exchange("K7WX3MPD9RTC", f"v{n}", "r1"))
    sweep_codes(ours)

    after = _reading(ours)
    entries = {name: after[name][1] - before[name][1] for name in after}
    assert {} == {name: after[name][0] - before[name][0] for name in after if after[name][0] > before[name][0]}
    assert entries.pop("code") <= TRIES * 12
    assert sum(entries.values()) <= TRIES * 6


def _reading(services: Services) -> dict[str, tuple[int, int]]:
    with services.engine.connect() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        connection.commit()
        connection.execute(text("SELECT pg_stat_clear_snapshot()"))
        return {row.relname: (int(row.scans), int(row.entries)) for row in connection.execute(_READ)}
