"""What breakers found in campaigns, each find with the test that would have shown it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, text

from coupon_workers.campaigns.batch_control import approve_batch, pause_batch
from coupon_workers.campaigns.batch_run import run_step
from coupon_workers.claiming.gate_step import step_field
from coupon_workers.errors import Conflict
from coupon_workers.runtime.services import Services
from tests.support.campaign import plan_campaign
from tests.support.sale import assert_sound, open_sale

CHUNK = 2_000
STEPS = 6
OTHERS = 50_000

_OTHER_COUPONS = """
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                        source, claimed_at)
    SELECT 'o' || n, n, 1 + n % 3, 1, 'early', 1, now(), now() + interval '7 days', 'claim', now()
      FROM generate_series(1, :people) AS n"""
_READ = text("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname ~ '^coupon_p?[0-9]+$'")


def run(engine: Engine, statement: str, **named: Any) -> None:
    """One statement."""
    with engine.begin() as connection:
        connection.execute(text(statement), named)


def entries_read(engine: Engine) -> int:
    """Of the indexes of coupons, so far."""
    run(engine, "SELECT pg_stat_force_next_flush()")
    run(engine, "SELECT pg_stat_clear_snapshot()")
    with engine.connect() as connection:
        return int(connection.scalar(_READ) or 0)


def test_uncounted_users_are_read_by_user_while_the_statistics_do_not_know_the_template(
    services: Services, one_connection: Engine
) -> None:
    """After servers died: all the template's coupons were compared with each member, until the timeout, each time."""
    ours = replace(services, engine=one_connection)
    run(one_connection, _OTHER_COUPONS, people=OTHERS)
    run(one_connection, "ANALYZE coupon")
    sale = open_sale(ours, total_quantity=CHUNK * STEPS)
    campaign = plan_campaign(sale, [f"u{number}" for number in range(CHUNK * STEPS)], shards=1)
    campaign.start()
    for step in range(STEPS - 1):
        run_step(ours, campaign.batch_id, 0, step * CHUNK)
    ours.redis.hdel(sale.keys.meta, step_field(campaign.batch_id, 0))
    before = entries_read(one_connection)

    run_step(ours, campaign.batch_id, 0, (STEPS - 1) * CHUNK)

    # Twice each user's coupons are looked up, or every coupon is read once: which is cheaper is PostgreSQL's to say, of
    # each partition by itself, and changes when it has looked at one meanwhile. The fault compared each with each.
    assert entries_read(one_connection) - before <= 2 * CHUNK * STEPS + OTHERS
    assert STEPS * CHUNK == campaign.books["issued_count"]


def test_a_paused_batch_that_waits_for_approval_is_not_said_to_need_none(services: Services) -> None:
    """It is refused for its status, and in words that are true."""
    campaign = plan_campaign(open_sale(services, total_quantity=10), ["u1"], needs_approval=True)
    pause_batch(services, campaign.batch_id, "key-1")

    with pytest.raises(Conflict) as refused:
        approve_batch(services, campaign.batch_id, "key-2")

    assert ("INVALID_STATUS", "a batch that is paused cannot be approved") == (refused.value.code, str(refused.value))
    assert_sound(services)
