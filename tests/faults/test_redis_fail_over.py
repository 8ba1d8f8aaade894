"""A replica of the stock's Redis that lagged by two seconds takes its master's place (FAULTS 6)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.fault_campaign import Campaign, OpenCampaign
from tests.support.fault_loss import broken_books, gone_claims
from tests.support.fault_replica import Replica, replica_of
from tests.support.fault_sale import Offer
from tests.support.fault_system import FaultSystem
from tests.support.fault_wait import until
from tests.support.history import Operation
from tests.support.history_books import read_books

LAG_S = 2.0
OFFERS = (Offer(total=900, weight=60, per_user=2, budget=36_000), Offer(total=50_000, weight=40, per_user=20))
"""The first one is sold out soon after the replica takes over, if it sells the lost seconds' units again."""


@pytest.fixture
def replica(system: FaultSystem, tmp_path: Path) -> Iterator[Replica]:
    """A replica that has everything the stock's Redis has."""
    assert system.settings.redis_url is not None
    path = Path(unquote(urlsplit(system.settings.redis_url.get_secret_value()).path))
    with replica_of(path, tmp_path / "replica") as replica:
        yield replica


@contextmanager
def failed_over(system: FaultSystem, replica: Replica) -> Iterator[None]:
    """The master is gone and the replica stands at its address, at first as a replica; at the end it is put back."""
    with system.held_down("redis"), replica.in_the_masters_place():
        yield
        replica.hand_back(system.folder / "data" / "redis")


def test_a_lagging_replica_in_its_masters_place_sells_nothing_twice(
    system: FaultSystem, open_campaign: OpenCampaign, replica: Replica
) -> None:
    """What it never heard of was settled: the surplus claims it lets in are rejected and counted.

    The fronts stand still while the queue is emptied, so that nothing but Redis's own memory is lost. They come back
    while it is still a replica: what would write is answered 503, and what reads is answered.
    """
    campaign = open_campaign(seed=61, offers=OFFERS)

    with ExitStack() as afterwards:
        with campaign.under_load():
            campaign.load.wait_for(600)
            replica.fall_behind()
            time.sleep(LAG_S)
            with system.stopped("web"):
                until(lambda: campaign.queued() == 0, what="the end of the queue")
                afterwards.enter_context(failed_over(system, replica))
            refused_from_s = time.monotonic()
            campaign.load.wait_for(50)
            replica.promote()
            refused_to_s = time.monotonic()
            campaign.load.wait_for(1_200)
        campaign.heal()
        surplus = read_books(campaign.engine, campaign.stock, campaign.template_ids).rejections
        campaign.facts["mended ms"] = round(1000 * until(lambda: not broken_books(campaign), 30.0, "the mending"))
        broken = campaign.broken_letters()

    campaign.facts["surplus rejected"] = len(surplus)
    meanwhile = asked_between(campaign, refused_from_s, refused_to_s)
    assert {503} == {op.status for op in meanwhile if op.status >= 500}
    assert surplus
    assert {"SOLD_OUT", "LIMIT_REACHED", "DUPLICATE"} >= {row.reason for row in surplus}
    assert {} == without(broken, "C")


def test_a_fail_over_in_mid_traffic_loses_no_claim_but_those_only_the_master_knew(
    system: FaultSystem, open_campaign: OpenCampaign, replica: Replica
) -> None:
    """Accepted within the lag and not yet settled: gone with the master. All others end as they were told to."""
    campaign = open_campaign(seed=62, offers=OFFERS)

    with ExitStack() as afterwards:
        with campaign.under_load():
            campaign.load.wait_for(600)
            replica.fall_behind()
            behind_s = time.monotonic()
            time.sleep(LAG_S)
            afterwards.enter_context(failed_over(system, replica))
            lost_s = time.monotonic()
            replica.promote()
            campaign.load.wait_for(1_200)
        campaign.heal()
        campaign.facts["mended ms"] = round(1000 * until(lambda: not broken_books(campaign), 30.0, "the mending"))
        broken = campaign.broken_letters()
        gone = gone_claims(campaign)

    campaign.facts["gone with the master"] = len(gone)
    assert all(behind_s - 0.5 < op.heard_s < lost_s + 0.5 for op in gone)
    assert {} == without(broken, *("CD" if gone else "C"))


def without(broken: dict[str, list[str]], *letters: str) -> dict[str, list[str]]:
    """What is broken beside these letters."""
    return {letter: words for letter, words in broken.items() if letter not in letters}


def asked_between(campaign: Campaign, from_s: float, to_s: float) -> list[Operation]:
    """What was asked and answered within these instants."""
    return [op for op in campaign.operations() if from_s < op.sent_s and op.heard_s < to_s]
