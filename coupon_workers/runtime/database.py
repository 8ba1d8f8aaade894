"""The way to PostgreSQL: one engine a process, UTC in every session, time-outs on every statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

from sqlalchemy import Connection, Engine, PoolProxiedConnection, QueuePool, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.settings import Settings

IDLE_IN_TRANSACTION_MS = 30_000
"""A process that hangs inside a transaction loses it, and its locks, after this: longer than any batch takes."""

PEAK_CONNECTIONS = 2
"""Connections beyond those a process is given, made when all are at work, and kept. Were they closed when the peak is
over, a peak that lasts would make a new one every few calls, and each plans every prepared statement anew."""

CONNECT_TIMEOUT_S = 3
POOL_WAIT_S = 5

TCP_USER_TIMEOUT_MS = 10_000
"""Data that was sent and is not acknowledged for this long ends the connection: keepalives do not run meanwhile. Unix
sockets have no such thing."""


FRONT_WAITING = 16
"""Threads of a front that may wait for a connection at once. A PostgreSQL that hangs holds those and the few that have
one, and the other threads go on accepting claims."""


class FrontPool(QueuePool):
    """A pool at which ``FRONT_WAITING`` threads wait, at most: the next one is told at once that there is none."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._places = BoundedSemaphore(FRONT_WAITING)

    def connect(self) -> PoolProxiedConnection:
        """A connection, made or waited for. Raises ``NoFreeConnection`` when too many wait, or for too long."""
        if not self._places.acquire(blocking=False):
            raise NoFreeConnection("too many wait for a connection")
        try:
            return super().connect()
        finally:
            self._places.release()


def make_engine(settings: Settings, *, pool_size: int | None = None, for_front: bool = False) -> Engine:
    """An engine for ``settings.database_url``. Make it after a fork, never before.

    ``for_front``: no more than ``FRONT_WAITING`` threads wait for a connection.

    Raises ``StoreUnavailable`` when no URL is set.
    """
    if settings.database_url is None:
        raise StoreUnavailable("PostgreSQL", "COUPON_DATABASE_URL is not set and no embedded server runs")
    options = (
        "-c timezone=UTC"
        f" -c statement_timeout={settings.statement_timeout_ms}"
        f" -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_MS}"
        # What is prepared (runtime/prepared_statement.py) is looked up by keys: one plan serves every user. And it is
        # a plan for a table that grows: on sale day a table of one page has a million rows before its statistics
        # know. Whoever reads whole tables turns sequential scans on for himself.
        " -c plan_cache_mode=force_generic_plan -c enable_seqscan=off"
    )
    connect_args: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "options": options,
        "application_name": "coupon-workers",
        # A server that vanished without a word is noticed in seconds, not hours.
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": TCP_USER_TIMEOUT_MS,
    }
    return create_engine(
        make_url(settings.database_url.get_secret_value()).set(drivername="postgresql+psycopg2"),
        poolclass=FrontPool if for_front else QueuePool,
        pool_size=(pool_size or settings.database_pool) + PEAK_CONNECTIONS,
        max_overflow=0,
        pool_use_lifo=True,
        pool_timeout=POOL_WAIT_S,
        pool_pre_ping=True,
        hide_parameters=True,  # user ids and hashes have no place in a log
        connect_args=connect_args,
    )


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn a lost, unreachable, overloaded or failing server into ``StoreUnavailable``; other errors pass."""
    try:
        yield
    except NoFreeConnection as error:
        raise StoreUnavailable("PostgreSQL", "every connection is at work") from error
    except (OperationalError, InterfaceError) as error:
        raise StoreUnavailable("PostgreSQL", str(error.orig)) from error
    except DBAPIError as error:
        if error.connection_invalidated or _is_of_the_server(error):
            raise StoreUnavailable("PostgreSQL", str(error.orig)) from error
        raise


def _is_of_the_server(error: DBAPIError) -> bool:
    """Whether PostgreSQL tells a failure inside of itself (class XX), as of a file that may not grow, or that it may
    only be read (25006), as a standby that has not been made the master yet."""
    return (getattr(error.orig, "pgcode", None) or "").startswith(("XX", "25006"))


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """One transaction: committed at the end, rolled back by any exception.

    Raises ``StoreUnavailable`` when the server is lost. After a lost COMMIT it is unknown whether it happened: the
    caller's work must be safe to run twice.
    """
    with database_errors(), engine.begin() as connection:
        yield connection
