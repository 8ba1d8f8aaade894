"""The front dies between the script's answer and the HTTP answer (FAULTS 1)."""

from __future__ import annotations

import random
import signal

import pytest

from tests.support.fault_campaign import OpenCampaign
from tests.support.fault_system import FaultSystem
from tests.support.fault_wait import until


@pytest.mark.parametrize(("point", "passes", "seed"), [("web.after_script", 150, 11), ("web.before_bell", 5, 12)])
def test_a_front_that_dies_over_a_claim_has_taken_it_once_or_not_at_all(
    system: FaultSystem, open_campaign: OpenCampaign, point: str, passes: int, seed: int
) -> None:
    """Whoever did not hear asks again, and is told of the claim that was made; a bell that was not rung is."""
    campaign = open_campaign(seed=seed)

    with campaign.under_load():
        system.prepare("web", COUPON_CRASH_AT=f"{point}:{passes}")
        system.end("web", signal.SIGTERM)
        campaign.facts["killed at the point"] = system.count_deaths("web", 5)
        system.prepare("web")
        system.end("web", signal.SIGTERM)
        campaign.load.wait_for(200)
    campaign.heal()

    assert {} == campaign.broken_letters()


def test_fronts_killed_at_random_have_taken_each_claim_once_or_not_at_all(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """One of the web processes, or their master, in the midst of many answers."""
    campaign = open_campaign(seed=13)
    draw = random.Random(13)

    with campaign.under_load():
        for _ in range(8):
            campaign.load.wait_for(draw.randrange(100, 300))
            until(lambda: len(system.family("web")) > 1, what="web processes")
            system.send("web", signal.SIGKILL, [draw.choice(system.family("web"))])
            campaign.facts["killed at random"] += 1
        campaign.load.wait_for(200)
    campaign.heal()

    assert {} == campaign.broken_letters()
