"""More wants PostgreSQL at once than there are connections, because each of them takes long (FAULTS 11)."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from sqlalchemy import Engine

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime import database
from coupon_workers.runtime.database import make_engine, transaction
from coupon_workers.runtime.settings import Settings


def test_who_finds_no_free_connection_is_told_that_the_store_is_unavailable(
    settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 503 to its client, as for a server that is away; it was a 500."""
    monkeypatch.setattr(database, "POOL_WAIT_S", 0.1)
    own = make_engine(settings, pool_size=1)

    with ExitStack() as held:
        for _ in range(3):  # the pool's own and what it may have beyond
            held.enter_context(own.connect())
        with pytest.raises(StoreUnavailable), transaction(own):
            pytest.fail("there was a connection left")

    with transaction(own) as connection:
        assert 1 == connection.exec_driver_sql("SELECT 1").scalar_one()
    own.dispose()
