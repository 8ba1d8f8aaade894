"""The stock's Redis is killed, comes back empty, comes back older, or stops answering (FAULTS 3, 4, 5, 7)."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.support.fault_campaign import OpenCampaign
from tests.support.fault_loss import broken_books, gone_claims
from tests.support.fault_post import encode, put
from tests.support.fault_sale import Offer
from tests.support.fault_system import FaultSystem
from tests.support.fault_wait import until
from tests.support.history_books import read_books

RELOADED_WITHIN_S = 15.0
"""A sweep each two seconds finds what is cold; a preheat of each template follows."""


def test_a_killed_redis_comes_back_with_every_claim_it_accepted(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """kill -9 with an append-only file, and back after 0.3, 1 and 2 seconds: 503 meanwhile."""
    campaign = open_campaign(seed=31)

    with campaign.under_load():
        for away_s in (0.3, 1.0, 2.0):
            with system.held_down("redis"):
                time.sleep(away_s)
            campaign.facts["redis killed"] += 1
            campaign.load.wait_for(300)
    campaign.heal()

    assert {} == campaign.broken_letters()


def test_an_empty_redis_refuses_until_it_is_rebuilt_and_then_stands_as_before(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """NOT_WARMED, never "sold out". Claims that only Redis knew of are gone with it; all others are as they were."""
    campaign = open_campaign(seed=41)

    with campaign.under_load():
        campaign.load.wait_for(600)
        with system.held_down("redis"):
            lost_s = time.monotonic()
            shutil.rmtree(append_only_folder(system))
        until(lambda: all(map(campaign.is_warm, campaign.template_ids)), RELOADED_WITHIN_S, "the rebuild")
        campaign.facts["rebuilt ms"] = round(1000 * (time.monotonic() - lost_s))
        campaign.load.wait_for(300)
    campaign.heal()

    broken = campaign.broken_letters()
    gone = gone_claims(campaign)
    campaign.facts["gone with Redis"] = len(gone)
    assert any(op.code == "NOT_WARMED" for op in campaign.operations())
    assert all(lost_s - 2.0 < op.heard_s < lost_s + 0.5 for op in gone)
    assert set() == broken.keys() - ({"C", "D"} if gone else set())


def append_only_folder(system: FaultSystem) -> Path:
    """Where the stock's Redis keeps everything."""
    return system.folder / "data" / "redis" / "appendonlydir"


def test_a_redis_that_comes_back_two_seconds_older_sells_nothing_twice(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """What it forgot was settled: the surplus claims it lets in are rejected and counted, and have it rebuilt.

    The fronts stand still while the queue is emptied, so that nothing but Redis's own memory is lost.
    """
    offers = (Offer(total=900, weight=60, per_user=2, budget=36_000), Offer(total=50_000, weight=40, per_user=20))
    campaign = open_campaign(seed=51, offers=offers)
    kept = system.folder / "older"

    with campaign.under_load():
        campaign.load.wait_for(600)
        shutil.copytree(append_only_folder(system), kept)
        time.sleep(2.0)
        with system.stopped("web"):
            until(lambda: campaign.queued() == 0, what="the end of the queue")
            with system.held_down("redis"):
                shutil.rmtree(append_only_folder(system))
                kept.replace(append_only_folder(system))
        campaign.load.wait_for(1_200)
    campaign.heal()
    surplus = read_books(campaign.engine, campaign.stock, campaign.template_ids).rejections
    campaign.facts["mended ms"] = round(1000 * until(lambda: not broken_books(campaign), 30.0, "the mending"))

    campaign.facts["surplus rejected"] = len(surplus)
    assert surplus
    assert {"SOLD_OUT", "LIMIT_REACHED", "DUPLICATE"} >= {row.reason for row in surplus}
    assert set() == campaign.broken_letters().keys() - {"C"}


@pytest.mark.parametrize(("stalled_s", "seed"), [(3.0, 71), (6.0, 72)])
def test_a_redis_that_stalls_takes_each_claim_once(
    system: FaultSystem, open_campaign: OpenCampaign, stalled_s: float, seed: int
) -> None:
    """It answers late what its callers have given up on and asked again: 503 meanwhile, and no unit taken twice.

    Rebuilds are under way when it stops, and their callers give up on them like all others.
    """
    campaign = open_campaign(seed=seed)

    with campaign.under_load():
        campaign.load.wait_for(400)
        for template_id in campaign.template_ids:
            put(campaign.broker, "care", encode("preheat_template", [template_id], "care"))
        with system.stopped("redis"):
            time.sleep(stalled_s)
        campaign.load.wait_for(800)
    campaign.heal()

    assert {} == campaign.broken_letters()
