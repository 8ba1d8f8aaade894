"""What a load waits for after kills: a front is ready without PostgreSQL, and reading coupons is not."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from coupon_workers.checking.reading import snapshot
from coupon_workers.embedded.postgres import EmbeddedPostgres
from coupon_workers.errors import StoreUnavailable
from coupon_workers.load.settled import wait_for_database
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.services import Services

LONG_S = 60.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A database of this test's own, which is stopped."""
    server = EmbeddedPostgres(tmp_path / "postgres", durable=False)
    with server:
        pass
    yield server
    server.stop()


@pytest.fixture
def elsewhere(services: Services, server: EmbeddedPostgres) -> Services:
    """Services on that database."""
    return replace(
        services, engine=make_engine(services.settings.model_copy(update={"database_url": SecretStr(server.url)}))
    )


def test_a_database_that_comes_back_is_waited_for(elsewhere: Services, server: EmbeddedPostgres) -> None:
    """Whatever it answers until then; afterwards it can be read."""
    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(wait_for_database, elsewhere, LONG_S)
        with pytest.raises(StoreUnavailable), snapshot(elsewhere):
            pass
        early = waiting.done()
        server.start()
        waiting.result(LONG_S)

    assert not early
    with snapshot(elsewhere) as connection:
        assert 1 == connection.exec_driver_sql("SELECT 1").scalar_one()


def test_a_database_that_stays_away_is_not_waited_for_without_end(elsewhere: Services) -> None:
    """What it said last is told."""
    with pytest.raises(StoreUnavailable, match="socket"):
        wait_for_database(elsewhere, 0.2)
