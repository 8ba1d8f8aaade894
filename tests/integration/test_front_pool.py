"""The connections of a front: few threads wait for one, and the others are told at once that there is none."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import FRONT_WAITING, PEAK_CONNECTIONS, make_engine, transaction
from coupon_workers.runtime.settings import Settings
from web.context import MOST_WAITS
from web.server import SPARE_THREADS


def test_few_threads_wait_for_a_connection(settings: Settings) -> None:
    """While all are held up, one more is refused at once; those that wait are served."""
    engine = make_engine(settings, pool_size=1, for_front=True)

    def ask() -> int:
        with transaction(engine) as connection:
            return int(connection.exec_driver_sql("SELECT 1").scalar_one())

    with ThreadPoolExecutor(FRONT_WAITING) as threads, ExitStack() as held:
        for _ in range(1 + PEAK_CONNECTIONS):
            held.enter_context(engine.connect())
        waiting = [threads.submit(ask) for _ in range(FRONT_WAITING)]
        while engine.pool._places._value:  # type: ignore[attr-defined]  # the only sign that all of them wait
            time.sleep(0.01)
        started_s = time.monotonic()
        with pytest.raises(StoreUnavailable, match="every connection is at work"):
            ask()
        took_s = time.monotonic() - started_s
        held.close()
        answers = [future.result() for future in waiting]

    assert took_s < 1
    assert [1] * FRONT_WAITING == answers
    assert 1 == ask()
    engine.dispose()


def test_connections_of_a_peak_are_kept(settings: Settings) -> None:
    """A peak that lasts would make new ones all the time, and each would plan every statement anew."""
    engine = make_engine(settings, pool_size=1)

    def at_once() -> set[int]:
        with ExitStack() as held:
            connections = [held.enter_context(engine.connect()) for _ in range(1 + PEAK_CONNECTIONS)]
            return {int(each.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()) for each in connections}

    first = at_once()

    assert 1 + PEAK_CONNECTIONS == len(first)
    assert first == at_once()
    engine.dispose()


def test_those_who_wait_leave_threads_to_claims(settings: Settings) -> None:
    """With all connections hanging, and all that may wait doing so."""
    hanging = settings.database_pool + PEAK_CONNECTIONS

    assert FRONT_WAITING + MOST_WAITS + hanging < SPARE_THREADS


def test_a_vanished_server_is_noticed_though_data_is_under_way(settings: Settings) -> None:
    """Keepalives do not run while sent data is not acknowledged."""
    engine = make_engine(settings)
    with engine.connect() as connection:
        parameters = connection.connection.driver_connection.get_dsn_parameters()  # type: ignore[union-attr]
    engine.dispose()

    assert "10000" == parameters["tcp_user_timeout"]
