"""A large batch whose workers are killed again and again, that is paused and resumed, and one that is cancelled
(FAULTS 21)."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event

import pytest
from sqlalchemy import text

from coupon_workers.campaigns.batch_control import cancel_batch, pause_batch, resume_batch
from coupon_workers.claiming.key import WARM_TEMPLATES
from coupon_workers.runtime.pace import MANY, note_claims
from coupon_workers.runtime.process import make_services
from tests.support.campaign import Campaign
from tests.support.campaign_heap import plan_large_campaign
from tests.support.fault_system import FaultSystem
from tests.support.fault_wait import until
from tests.support.sale import Sale, assert_sound, open_sale

PEOPLE = 200_000
EARLY = 500
FEWER = 60_000
PACED = 30_000
TEMPLATE_IDS = count(9_021)
DEATHS = 4
ENDS_WITHIN_S = 90.0
_SAME = "c.template_id = :template_id AND c.user_id = coupon_flow.user_id AND c.coupon_id = coupon_flow.coupon_id"


@pytest.fixture
def sale(system: FaultSystem) -> Iterator[Sale]:
    """One coupon a user, more than enough for all; some users have theirs."""
    services = make_services(system.settings)
    sale = open_sale(services, template_id=next(TEMPLATE_IDS), total_quantity=PEOPLE * 2, per_user_limit=1)
    sale.claim_each(f"u{number}" for number in range(EARLY))
    until(lambda: sale.drain() == 0 and sale.queued == 0, what="the early claims settled")
    yield sale
    forget(sale)
    services.engine.dispose()


def forget(sale: Sale) -> None:
    """Leave nothing of it to be checked again by each test that comes after."""
    mine = {"template_id": sale.template_id}
    batches = "batch_id IN (SELECT batch_id FROM issue_batch WHERE template_id = :template_id)"
    with sale.services.engine.begin() as connection:
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text(f"DELETE FROM coupon_flow USING coupon c WHERE {_SAME}"), mine)
        for table in ("audience_member", "batch_failure", "issue_shard"):
            connection.execute(text(f"DELETE FROM {table} WHERE {batches}"), mine)
        for table in ("outbox", "coupon", "issue_batch", "coupon_template"):
            connection.execute(text(f"DELETE FROM {table} WHERE template_id = :template_id"), mine)
    client = sale.services.redis
    client.srem(WARM_TEMPLATES, f"{sale.template_id}.0")
    client.unlink(*client.scan_iter(f"cw:{{t{sale.template_id}.0}}:*", count=10_000))


def kill_when(system: FaultSystem, campaign: Campaign, issued: int, draw: random.Random) -> None:
    """Kill one of the worker's processes as soon as so many are issued; returns when another worker is there."""
    until(lambda: len(system.family("worker")) > 1, what="a worker's processes")
    until(lambda: campaign.books["issued_count"] >= issued, ENDS_WITHIN_S, f"{issued} issued")
    family = system.family("worker")
    system.send("worker", signal.SIGKILL, [draw.choice(family)])
    system.wait_for_another("worker", family[0])


def test_a_large_batch_survives_the_death_of_its_workers(system: FaultSystem, sale: Sale) -> None:
    """Four deaths at random moments, one of them while it is paused; every user once, and both stores agree."""
    draw = random.Random(21)
    campaign = plan_large_campaign(sale, PEOPLE, shards=16)
    moments = sorted(draw.sample(range(4_000, PEOPLE - 40_000), DEATHS - 1))
    campaign.start()

    for number, issued in enumerate(moments):
        kill_when(system, campaign, issued, draw)
        if number == 1:
            pause_batch(sale.services, campaign.batch_id, "key-2")
            stopped = campaign.books["issued_count"]
            kill_when(system, campaign, 0, draw)
            assert stopped == campaign.books["issued_count"]
            resume_batch(sale.services, campaign.batch_id, "key-2")
    until(lambda: campaign.books["status"] == "done", ENDS_WITHIN_S, "the end of the batch")

    books = campaign.books
    assert (PEOPLE - EARLY, EARLY, 0) == (books["issued_count"], books["refused_count"], books["left_quantity"])
    assert [(PEOPLE, PEOPLE)] == sale.rows(
        "SELECT count(*), count(DISTINCT user_id) FROM coupon WHERE template_id = :template_id"
    )
    assert (PEOPLE, PEOPLE) == (sale.stock, sale.services.redis.hlen(sale.keys.takers))
    assert_sound(sale.services)


def test_steps_that_keep_to_a_pace_survive_their_worker(system: FaultSystem, sale: Sale) -> None:
    """They wait in the broker, or in a worker that dies with them; claims come all the while."""
    campaign = plan_large_campaign(sale, PACED, shards=16, prefix="p")
    over = Event()

    def keep_claims_coming() -> None:
        while not over.wait(0.2):
            note_claims(sale.services, 10 * MANY)

    with ThreadPoolExecutor(1) as beside:
        noted = beside.submit(keep_claims_coming)
        try:
            campaign.start()
            for issued in (1, 8_000):
                kill_when(system, campaign, issued, random.Random(issued))
            until(lambda: campaign.books["status"] == "done", ENDS_WITHIN_S, "the end of the batch")
        finally:
            over.set()
    noted.result()

    assert (PACED, 0) == (campaign.books["issued_count"], campaign.books["left_quantity"])
    assert [(PACED, PACED)] == sale.rows(
        f"SELECT count(*), count(DISTINCT user_id) FROM coupon WHERE batch_no = '{campaign.batch_id}'"
    )
    assert_sound(sale.services)


def test_a_batch_that_is_cancelled_as_its_workers_die_gives_back_the_rest(system: FaultSystem, sale: Sale) -> None:
    """What was issued stays, and is counted by the gate, whoever died over it."""
    campaign = plan_large_campaign(sale, FEWER, shards=16, prefix="w")
    campaign.start()
    until(lambda: campaign.books["issued_count"] > 10_000, ENDS_WITHIN_S, "some issued")
    system.send("worker", signal.SIGKILL, system.family("worker"))

    cancel_batch(sale.services, campaign.batch_id, "key-2")
    issued = campaign.books["issued_count"]
    until(lambda: _counted(campaign), ENDS_WITHIN_S, "the sweep's counting")

    assert ("cancelled", issued, 0) == tuple(
        campaign.books[name] for name in ("status", "issued_count", "left_quantity")
    )
    assert (EARLY + issued, 0) == (sale.books["issued_quantity"], sale.books["reserved_quantity"])
    assert PEOPLE * 2 - EARLY - issued == sale.stock
    assert_sound(sale.services)


def _counted(campaign: Campaign) -> bool:
    rows = campaign.sale.rows(
        f"SELECT 1 FROM issue_shard WHERE batch_id = {campaign.batch_id} AND gate_cursor < cursor"
    )
    return not rows
