"""Every process is restarted in turn, by SIGTERM, while the load goes on (FAULTS 18)."""

from __future__ import annotations

import signal

from tests.support.fault_campaign import OpenCampaign
from tests.support.fault_system import FaultSystem


def test_a_rolling_restart_loses_no_accepted_claim_and_answers_nothing_but_503(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """Front, worker and scheduler, one every few seconds."""
    campaign = open_campaign(seed=181)

    with campaign.under_load():
        for name in ("web", "worker", "scheduler"):
            system.end(name, signal.SIGTERM)
            system.wait_ready()
            campaign.facts[f"{name} restarted"] += 1
            campaign.load.wait_for(600)
    campaign.heal()

    assert not [op for op in campaign.operations() if op.status >= 500 and op.status != 503]
    assert {} == campaign.broken_letters()
