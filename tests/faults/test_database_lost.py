"""PostgreSQL is killed, stopped, away for long, or slow (FAULTS 9, 10, 11)."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text

from tests.support.fault_campaign import Campaign, OpenCampaign
from tests.support.fault_sale import Offer
from tests.support.fault_system import BACKLOG_LIMIT, FaultSystem
from tests.support.fault_wait import until

MOST_LINES_A_SECOND = 100
"""Logged by all our processes together while a server is away: it is told, not shouted."""

_OF_OURS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'coupon-workers'"


def test_a_database_that_is_killed_or_stopped_loses_no_claim_and_doubles_none(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """Back ends ended and killed, an immediate stop, the postmaster killed; claims are accepted all the while."""
    campaign = open_campaign(seed=91)

    with campaign.under_load():
        began = time.monotonic()
        for _ in range(5):
            campaign.load.wait_for(100)
            with campaign.engine.connect() as connection:
                ended = connection.scalars(text(f"SELECT pg_terminate_backend(pid) FROM ({_OF_OURS}) AS ours"))
                campaign.facts["sessions ended"] += len(list(ended))
        system.send("postgres", signal.SIGKILL, back_ends(campaign)[:1])
        campaign.facts["back ends killed"] += 1
        campaign.load.wait_for(300)
        for number in (signal.SIGQUIT, signal.SIGKILL):
            with system.held_down("postgres", number):
                campaign.load.wait_for(200)
            campaign.facts["postmasters lost"] += 1
            campaign.load.wait_for(200)
        lasted_s = time.monotonic() - began
    campaign.heal()

    assert {} == campaign.broken_letters()
    assert log_lines(campaign) < MOST_LINES_A_SECOND * lasted_s


def back_ends(campaign: Campaign) -> list[int]:
    """The back ends that serve our processes."""
    with campaign.engine.connect() as connection:
        return list(connection.scalars(text(_OF_OURS)))


def log_lines(campaign: Campaign) -> int:
    """Lines our processes have logged during the campaign."""
    return sum(log.count("\n") for log in campaign.logs())


def test_without_a_database_claims_are_accepted_up_to_the_backlog_and_settled_later(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """Gone for ten seconds: 202, then 503 BACKLOG_FULL, and everything accepted is issued once it is back."""
    campaign = open_campaign(seed=101, offers=(Offer(total=50_000, weight=1, per_user=200),))

    with campaign.under_load():
        with system.held_down("postgres", signal.SIGQUIT):
            gone_s = time.monotonic()
            longest = 0
            while time.monotonic() < gone_s + 10.0:
                longest = max(longest, campaign.queued())
                time.sleep(0.05)
            back_s = time.monotonic()
        campaign.load.wait_for(200)
    campaign.heal()

    asked = [op for op in campaign.operations() if op.name == "claim"]
    meanwhile = [op for op in asked if gone_s < op.sent_s and op.heard_s < back_s]
    campaign.facts["accepted without a database"] = sum(op.status == 202 for op in meanwhile)
    campaign.facts["longest queue"] = longest
    assert BACKLOG_LIMIT == longest
    assert BACKLOG_LIMIT * 0.8 < campaign.facts["accepted without a database"] <= BACKLOG_LIMIT
    assert {"BACKLOG_FULL"} == {op.code for op in meanwhile if op.status == 503}
    assert {} == campaign.broken_letters()
    assert log_lines(campaign) < MOST_LINES_A_SECOND * 10


def test_a_slow_database_delays_claims_and_loses_none(system: FaultSystem, open_campaign: OpenCampaign) -> None:
    """A template's row locked for five seconds, another one's settling kept out for as long: nobody is refused."""
    campaign = open_campaign(seed=111)
    row, kept_out = campaign.template_ids[2], campaign.template_ids[3]

    with campaign.under_load():
        campaign.load.wait_for(200)
        with held_open(campaign, f"SELECT FROM coupon_template WHERE template_id = {row} FOR UPDATE"):
            with held_open(campaign, f"SELECT pg_advisory_xact_lock({kept_out})"):
                time.sleep(5.0)
                campaign.facts["queued behind the locks"] = campaign.queued()
        until(lambda: campaign.queued() < 100, 10.0, "the end of the queue")
        campaign.load.wait_for(200)
    campaign.heal()

    assert campaign.facts["queued behind the locks"] > 100
    assert {} == campaign.broken_letters()
    assert not [op for op in campaign.operations() if op.status >= 500 and op.code != "BACKLOG_FULL"]


@contextmanager
def held_open(campaign: Campaign, statement: str) -> Iterator[None]:
    """A transaction that keeps what ``statement`` locks for as long as the block runs."""
    with campaign.engine.connect() as connection, connection.begin():
        connection.execute(text(statement))
        yield
