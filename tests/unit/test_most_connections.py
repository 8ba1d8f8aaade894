"""The embedded PostgreSQL has a connection for whatever ``up`` starts as it is shipped, on a machine of any size."""

from __future__ import annotations

import os

import pytest

from coupon_workers.embedded.postgres import most_connections
from coupon_workers.runtime.database import PEAK_CONNECTIONS
from coupon_workers.runtime.settings import Settings


@pytest.mark.parametrize("cores", [1, 2, 16, 32, 256])
def test_every_process_gets_its_connections_on_a_machine_of_any_size(
    monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    """A front has a process a core; commands, and those that may always come in, have some left."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    settings = Settings()
    processes = settings.web_workers + settings.worker_processes + 1

    assert processes * (settings.database_pool + PEAK_CONNECTIONS) + 20 <= most_connections()
