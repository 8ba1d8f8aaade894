"""One installation for all experiments of a run, whole again after each, and a table of what was seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.fault_campaign import Campaign, OpenCampaign
from tests.support.fault_sale import OFFERS, Offer
from tests.support.fault_system import FaultSystem

_seen: dict[str, Counter[str]] = {}


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultSystem]:
    """Everything ``up`` runs, in a folder of its own."""
    system = FaultSystem(tmp_path_factory.mktemp("installation"))
    system.start()
    yield system
    system.stop()


@pytest.fixture
def system(installation: FaultSystem) -> Iterator[FaultSystem]:
    """The installation; processes that were given other settings get their own again."""
    yield installation
    installation.restore()


@pytest.fixture
def open_campaign(system: FaultSystem, tmp_path: Path, request: pytest.FixtureRequest) -> OpenCampaign:
    """Puts templates on sale and prepares a load; what is seen of it is shown at the end of the run."""

    def opened(*, seed: int, rate: float = 400.0, offers: Sequence[Offer] = OFFERS, users: int = 400) -> Campaign:
        campaign = Campaign(system, tmp_path, seed=seed, rate=rate, offers=offers, users=users)
        _seen[request.node.name] = campaign.facts
        return campaign

    return opened


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the experiments have seen."""
    if not _seen:
        return
    terminalreporter.section("fault experiments")
    for name, facts in _seen.items():
        terminalreporter.write_line(f"{name}: {', '.join(f'{key} {value}' for key, value in facts.items())}")
