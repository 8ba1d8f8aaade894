"""One installation for all experiments of a worker, whole again after each, which tell what they have seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine

from coupon_workers.embedded import keeper
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from tests.support.fault_bites import database_to_break
from tests.support.fault_bites import open_shop as open_empty_shop
from tests.support.fault_campaign import Campaign, OpenCampaign
from tests.support.fault_sale import OFFERS, Offer
from tests.support.fault_system import FaultSystem
from tests.support.history_shop import OpenShop
from tests.support.seen_facts import note_facts

REPLACED_WITHIN_S = 0.5
"""So that a short run sees many deaths: a process that dies again and again waits up to five seconds otherwise."""


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultSystem]:
    """Everything ``up`` runs, in a folder of its own."""
    system = FaultSystem(tmp_path_factory.mktemp("installation"))
    system.start()
    yield system
    system.stop()


@pytest.fixture
def system(installation: FaultSystem, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultSystem]:
    """The installation, whose dead are replaced at once; what a test has changed in it is put right again."""
    monkeypatch.setattr(keeper, "LONGEST_DELAY_S", REPLACED_WITHIN_S)
    yield installation
    installation.restore()


@pytest.fixture
def open_campaign(system: FaultSystem, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OpenCampaign]:
    """Puts templates on sale and prepares a load; what is seen of it is shown at the end of the run."""
    campaigns: list[Campaign] = []

    def opened(*, seed: int, rate: float = 400.0, offers: Sequence[Offer] = OFFERS, users: int = 400) -> Campaign:
        campaigns.append(Campaign(system, tmp_path, seed=seed, rate=rate, offers=offers, users=users))
        return campaigns[-1]

    yield opened
    for campaign in campaigns:
        note_facts(request.node, campaign.facts)


@pytest.fixture(scope="module")
def engine_to_break(settings: Settings) -> Iterator[Engine]:
    """A database whose keys a test may drop."""
    with database_to_break(settings) as engine:
        yield engine


@pytest.fixture
def open_shop(services: Services, engine_to_break: Engine, tmp_path: Path) -> OpenShop:
    """Opens a sale of six units in that database, with everything empty."""
    return partial(open_empty_shop, services, engine_to_break, tmp_path)
