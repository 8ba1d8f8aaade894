"""Redis carries out what it is asked, and the answer gets lost on its way (FAULTS 8)."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.support.fault_campaign import OpenCampaign
from tests.support.fault_proxy import lossy
from tests.support.fault_system import FaultSystem


def test_a_lost_answer_of_redis_takes_nothing_twice_and_loses_nothing(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """To the front, to the worker, to everybody: one answer in twenty, and for a while one in three."""
    campaign = open_campaign(seed=81)
    assert system.settings.redis_url is not None
    path = Path(unquote(urlsplit(system.settings.redis_url.get_secret_value()).path))

    with campaign.under_load():
        for share in (0.05, 0.33):
            with lossy(path, share=share, seed=81) as proxy:
                campaign.load.wait_for(800)
            campaign.facts["answers lost"] += proxy.seen["lost"]
            campaign.facts["answers passed on"] += proxy.seen["passed on"]
        campaign.load.wait_for(200)
    campaign.heal()

    assert campaign.facts["answers lost"] > 100
    assert {} == campaign.broken_letters()
