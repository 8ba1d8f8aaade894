"""A database of our own on the run's server, and sales in it: for tests that break what the database guards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url

from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.schema.migration import upgrade
from tests.support.empty_database import empty_database
from tests.support.history_shop import HistoryShop
from tests.support.sale import open_sale

UNITS = 6


@contextmanager
def database_to_break(settings: Settings) -> Iterator[Engine]:
    """The newest schema in a database that nobody else uses."""
    assert settings.database_url is not None
    url = make_url(settings.database_url.get_secret_value())
    admin = create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql("DROP DATABASE IF EXISTS bites WITH (FORCE)")
        connection.exec_driver_sql("CREATE DATABASE bites")
    engine = create_engine(url.set(database="bites"))
    upgrade(engine)
    yield engine
    engine.dispose()
    admin.dispose()


def open_shop(services: Services, engine: Engine, path: Path, **columns: Any) -> HistoryShop:
    """A sale of ``UNITS`` units in the database of ``engine``, all of whose tables are emptied."""
    empty_database(engine)
    own = replace(services, engine=engine)
    assert services.settings.broker_url is not None
    broker = client_without_retries(services.settings.broker_url.get_secret_value(), 2_000)
    return HistoryShop(open_sale(own, total_quantity=UNITS, **columns), broker, path / "history.jsonl")
