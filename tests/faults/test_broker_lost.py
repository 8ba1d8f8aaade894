"""The broker is away, or stalls, or loses its connections while an actor fails (FAULTS 12)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from tests.support.fault_campaign import Campaign, OpenCampaign
from tests.support.fault_post import dead, encode, put
from tests.support.fault_sale import Offer
from tests.support.fault_system import FaultSystem
from tests.support.fault_wait import until

_WAITS_FOR = """
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
       AND (classid::bigint << 32) + objid::bigint = :lock"""


def test_without_a_broker_claims_are_accepted_and_settled_once_it_is_back(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """Killed and held down for four seconds, then stopped for three: no answer but a claim's own, none lost."""
    campaign = open_campaign(seed=121)

    with campaign.under_load():
        for away in (system.held_down("broker"), system.stopped("broker")):
            gone_s = time.monotonic()
            with away:
                time.sleep(3.0)
            back_s = time.monotonic()
            campaign.load.wait_for(200)
            meanwhile = [op for op in campaign.operations() if gone_s < op.sent_s and op.heard_s < back_s]
            campaign.facts["accepted without a broker"] += sum(op.status == 202 for op in meanwhile)
    campaign.heal()

    assert campaign.facts["accepted without a broker"] > 200
    assert not [op for op in campaign.operations() if op.status >= 500 and op.code != "BACKLOG_FULL"]
    assert {} == campaign.broken_letters()


def test_a_message_whose_actor_fails_while_the_broker_is_down_is_kept_as_a_dead_letter(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """Its retry cannot be enqueued, and its failure not be told: sent 1 = dead 1, and replayed = done 1."""
    campaign = open_campaign(seed=122, offers=(Offer(total=100, weight=1),))
    (template_id,) = campaign.template_ids
    before = campaign.generation(template_id)

    with preheat_at_work(campaign, template_id) as fail:
        with system.held_down("broker"):
            fail()
            time.sleep(1.0)
    until(lambda: dead(campaign.broker, "care"), what="the dead letter")

    assert before == campaign.generation(template_id)
    (message_id,) = dead(campaign.broker, "care")
    replayed = campaign.ask("POST", f"/v1/dead-letters/{message_id}/replay", key=f"replay-{message_id}")
    assert 200 == replayed.status
    until(lambda: before != campaign.generation(template_id), what="the preheat")
    campaign.heal()
    assert {} == dead(campaign.broker, "care")
    assert {} == campaign.broken_letters()


@pytest.mark.parametrize("away_s", [0.0, 2.0])
def test_a_retry_that_waits_for_its_time_outlives_the_broker(
    system: FaultSystem, open_campaign: OpenCampaign, away_s: float
) -> None:
    """It has been fetched, and waits in the worker's memory, when the broker dies."""
    campaign = open_campaign(seed=123 + int(away_s), offers=(Offer(total=100, weight=1),))
    (template_id,) = campaign.template_ids
    before = campaign.generation(template_id)

    with preheat_at_work(campaign, template_id) as fail:
        fail()
        broker = campaign.broker
        until(lambda: broker.hlen("dramatiq:care.DQ.msgs"), what="the retry")
        with system.held_down("broker"):
            time.sleep(away_s)

    until(lambda: before != campaign.generation(template_id), 30.0, "the preheat")
    campaign.heal()
    assert {} == campaign.broken_letters()


@contextmanager
def preheat_at_work(campaign: Campaign, template_id: int) -> Iterator[Callable[[], None]]:
    """A message to preheat a template whose actor has begun, and waits for us; what is yielded makes it fail."""
    arguments = {"lock": template_id}
    with campaign.engine.connect() as connection, connection.begin():
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), arguments)
        put(campaign.broker, "care", encode("preheat_template", [template_id], "care"))
        until(lambda: connection.scalar(text(_WAITS_FOR), arguments), what="the preheat to begin")

        def fail() -> None:
            session = connection.scalar(text(_WAITS_FOR), arguments)
            connection.execute(text("SELECT pg_terminate_backend(:session)"), {"session": session})

        yield fail
