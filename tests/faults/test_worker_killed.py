"""The worker dies at every point of settling, again and again, and at random (FAULTS 2)."""

from __future__ import annotations

import random
import signal

from tests.support.fault_campaign import OpenCampaign
from tests.support.fault_system import FaultSystem
from tests.support.fault_wait import until

POINTS = ("settle.before_insert", "settle.after_insert", "settle.after_commit", "settle.after_acknowledge")
CRASH = "COUPON_CRASH_AT"


def test_a_worker_that_dies_anywhere_in_settling_loses_no_claim_and_doubles_none(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """Before and after the insert, after the commit, after the acknowledgement; then whatever it is doing."""
    campaign = open_campaign(seed=21)
    points = [f"{point}:1" for point in POINTS]

    with campaign.under_load():
        system.restart("worker", signal.SIGKILL, COUPON_CRASH_AT=points[0])
        for point, following in zip(points, [*points[1:], ""], strict=True):
            until(lambda point=point: system.setting("worker", CRASH) == point, what=point)  # type: ignore[misc]
            dying = system.master("worker")
            system.prepare("worker", **({CRASH: following} if following else {}))
            campaign.ring()
            system.wait_for_another("worker", dying)
            campaign.facts["killed at a point"] += 1
        draw = random.Random(21)
        for _ in range(1):
            until(lambda: len(system.family("worker")) > 1, what="a worker's processes")
            campaign.load.wait_for(draw.randrange(100, 400))
            family = system.family("worker")
            system.send("worker", signal.SIGKILL, [draw.choice(family)])
            system.wait_for_another("worker", family[0])
            campaign.facts["killed at random"] += 1
        campaign.load.wait_for(200)
    campaign.heal()

    assert {} == campaign.broken_letters()
