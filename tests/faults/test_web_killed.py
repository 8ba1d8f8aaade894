"""The front dies between the script's answer and the HTTP answer, and at random (FAULTS 1)."""

from __future__ import annotations

import random
import signal

from tests.support.fault_campaign import OpenCampaign
from tests.support.fault_system import FaultSystem
from tests.support.fault_wait import until


def test_a_front_that_dies_over_a_claim_has_taken_it_once_or_not_at_all(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """After the script, before the bell, and anywhere: who did not hear asks again, and is told of the claim made."""
    campaign = open_campaign(seed=11)

    with campaign.under_load():
        for point in ("web.after_script:100", "web.before_bell:3"):
            system.restart("web", signal.SIGKILL, COUPON_CRASH_AT=point)
            campaign.facts[f"killed at {point}"] = system.count_deaths("web", 2)
        system.restart("web")
        draw = random.Random(11)
        for _ in range(2):
            campaign.load.wait_for(100)
            until(lambda: len(system.family("web")) > 2, what="both web processes")
            system.send("web", signal.SIGKILL, [draw.choice(system.family("web")[1:])])
            campaign.facts["killed at random"] += 1
        campaign.load.wait_for(200)
    campaign.heal()

    assert {} == campaign.broken_letters()
