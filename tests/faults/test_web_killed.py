"""The front dies between the script's answer and the HTTP answer (FAULTS 1)."""

from __future__ import annotations

from tests.support.fault_campaign import OpenCampaign
from tests.support.fault_system import FaultSystem


def test_a_quiet_load_holds(system: FaultSystem, open_campaign: OpenCampaign) -> None:
    """x"""
    campaign = open_campaign(seed=1)

    with campaign.under_load():
        campaign.load.wait_for(1500)
    campaign.heal()

    assert {} == campaign.broken_letters()
