"""The plans of a step: by indexes, as many rows as it has users, among two hundred thousand coupons and members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, text

from coupon_workers.campaigns.batch_run import run_step
from coupon_workers.claiming.gate_step import step_field
from coupon_workers.runtime.services import Services
from tests.support.campaign import Campaign, plan_campaign
from tests.support.sale import Sale, open_sale

PEOPLE = 200_000
CHUNK = 2_000
STEPS = 3

_COUPONS = """
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                        source, claimed_at)
    SELECT 'u' || n, :first + n, :template_id, 1, 'early', 1, now(), now() + interval '7 days', 'claim', now()
      FROM generate_series(1, :people) AS n"""
_MEMBERS = """
    INSERT INTO audience_member (batch_id, shard, member_no, user_id, row_no)
    SELECT :batch_id, 0, n, 'u' || n, n FROM generate_series(1, :people) AS n"""
_READ = text("""
    SELECT t.relname, coalesce(t.seq_scan, 0) AS scans,
           (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid) AS entries
      FROM pg_stat_user_tables t
     WHERE t.relname ~ '^(coupon(_flow)?(_p?[0-9]+)?|audience_member|issue_shard|issue_batch|batch_failure)$'
""")


def reading(engine: Engine) -> dict[str, tuple[int, int]]:
    """For each table how often it was read from end to end, and how many entries of its indexes were."""
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        connection.commit()
        connection.execute(text("SELECT pg_stat_clear_snapshot()"))
        return {row.relname: (int(row.scans), int(row.entries or 0)) for row in connection.execute(_READ)}


def run(engine: Engine, statement: str, **named: Any) -> None:
    """One statement."""
    with engine.begin() as connection:
        connection.execute(text(statement), named)


def large_campaign(sale: Sale) -> Campaign:
    """A batch for everybody, in one shard, that runs."""
    campaign = plan_campaign(sale, [], shards=1, row_count=PEOPLE, audience_count=PEOPLE)
    engine = sale.services.engine
    run(engine, _MEMBERS, batch_id=campaign.batch_id, people=PEOPLE)
    run(engine, "UPDATE issue_shard SET member_count = :people", people=PEOPLE)
    assert "running" == campaign.start()
    return campaign


@pytest.mark.parametrize("analyzed", [False, True])
@pytest.mark.parametrize("limit", [None, 2])
def test_a_step_reads_as_many_rows_as_it_has_users(
    services: Services, one_connection: Engine, limit: int | None, analyzed: bool
) -> None:
    """In the middle of a shard, where everybody has a coupon of the template already; with or without statistics."""
    ours = replace(services, engine=one_connection)
    sale = open_sale(ours, total_quantity=PEOPLE * 2, per_user_limit=limit)
    run(one_connection, _COUPONS, first=sale.template_id, template_id=sale.template_id, people=PEOPLE)
    run(one_connection, "UPDATE coupon_template SET issued_quantity = :people", people=PEOPLE)
    campaign = large_campaign(sale)
    middle = PEOPLE // 2
    run(one_connection, "UPDATE issue_shard SET cursor = :middle", middle=middle)
    ours.redis.hset(sale.keys.meta, step_field(campaign.batch_id, 0), str(middle))
    if analyzed:
        run(one_connection, "ANALYZE coupon, audience_member, issue_batch, issue_shard")
    before = reading(one_connection)

    for step in range(STEPS):
        run_step(ours, campaign.batch_id, 0, middle + step * CHUNK)

    after = reading(one_connection)
    entries = {name: after[name][1] - before[name][1] for name in after}
    read_whole = {name for name in after if after[name][0] > before[name][0]}
    assert set() == read_whole - {"issue_batch", "issue_shard"}  # of one row each
    assert STEPS * CHUNK == campaign.books["issued_count"]
    assert entries["audience_member"] <= 2 * STEPS * CHUNK + STEPS
    held = sum(count for name, count in entries.items() if name.startswith("coupon_p"))
    assert held <= 4 * STEPS * CHUNK, held


def test_a_step_that_counts_for_others_reads_their_members_once(services: Services, one_connection: Engine) -> None:
    """Nothing was counted in the first half of the shard: page by page, each user's coupon by his index."""
    ours = replace(services, engine=one_connection)
    sale = open_sale(ours, total_quantity=PEOPLE * 2)
    campaign = large_campaign(sale)
    for step in range(STEPS):
        run_step(ours, campaign.batch_id, 0, step * CHUNK)
    ours.redis.hdel(sale.keys.meta, step_field(campaign.batch_id, 0))
    before = reading(one_connection)

    run_step(ours, campaign.batch_id, 0, STEPS * CHUNK)

    after = reading(one_connection)
    read_whole = {name for name in after if after[name][0] > before[name][0]}
    assert set() == read_whole - {"issue_batch", "issue_shard"}
    assert after["audience_member"][1] - before["audience_member"][1] <= 3 * (STEPS + 1) * CHUNK
