"""The scheduler's session is ended between its statement and its way back to the pool (FAULTS 9)."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import Engine, text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.settings import Settings
from coupon_workers.scheduling.leader import statement_at_once


def test_a_session_ended_after_its_statement_is_an_outage_and_costs_no_place_in_the_pool(
    settings: Settings, engine: Engine
) -> None:
    """However often it happens: a scheduler without a connection would sweep no gate any more."""
    own = make_engine(settings, pool_size=1)

    for _ in range(6):
        assert 1 == answer(own)
        with pytest.raises(StoreUnavailable), statement_at_once(own) as connection:
            session = connection.scalar(text("SELECT pg_backend_pid()"))
            end_session(engine, session)

    assert 1 == answer(own)
    own.dispose()


def answer(engine: Engine) -> int:
    """What a statement answers; the second time its session comes from the pool."""
    for _ in range(2):
        with statement_at_once(engine) as connection:
            found: int = connection.scalar(text("SELECT 1"))
    return found


def end_session(engine: Engine, session: int) -> None:
    """End it, and return when it is gone."""
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:session)"), {"session": session})
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with engine.begin() as connection:
            if not connection.scalar(text("SELECT count(*) FROM pg_stat_activity WHERE pid = :s"), {"s": session}):
                return
    pytest.fail("the session goes on")
