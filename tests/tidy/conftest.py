"""A running installation for the documents, started when the first of them is run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coupon_workers.embedded.output import LogFolder
from coupon_workers.embedded.running_system import RunningSystem
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL

EMBEDDED = {DATABASE_URL: "", REDIS_URL: "", BROKER_URL: ""}


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystem]:
    """Every process of the Procfile, on servers and a port of its own."""
    folder = tmp_path_factory.mktemp("documents")
    logs = LogFolder(folder / "logs")
    with RunningSystem(folder / "data", overrides=EMBEDDED, output=logs, durable=False) as running:
        yield running
