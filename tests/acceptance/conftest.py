"""The application in this process, or a shop in it, and a real installation for the run, started when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from flask.testing import FlaskClient
from flask_openapi3 import OpenAPI
from sqlalchemy import Engine

from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.worker_number import LeasedIds
from tests.support.http_shop import Shop, empty_stores
from tests.support.http_system import System
from tests.support.http_wire import Wires
from web.app import create_app


@pytest.fixture
def app(services: Services) -> OpenAPI:
    """The application on empty stores."""
    return create_app(services)


@pytest.fixture
def client(app: OpenAPI) -> FlaskClient:
    """A client of it, without a key."""
    return app.test_client()


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop on empty stores, without a limit of claims a second."""
    return Shop(services, claim_rate=0)


@pytest.fixture(scope="module")
def lasting_shop(settings: Settings, migrated_engine: Engine) -> Iterator[Shop]:
    """The same for a whole module whose tests leave nothing behind; take no ``shop`` beside it."""
    services = make_services(settings)
    ids = LeasedIds(services.redis)
    empty_stores(services)
    yield Shop(replace(services, next_id=ids.next_id), claim_rate=0)
    ids.close()
    services.engine.dispose()


@pytest.fixture
def wires(settings: Settings) -> Iterator[Wires]:
    """The lines to the run's servers."""
    made = Wires(settings)
    yield made
    made.close()


@pytest.fixture
def far_shop(wires: Wires, services: Services) -> Iterator[Shop]:
    """A shop, on empty stores, that reaches its servers over the wires, post included."""
    made = make_services(wires.settings)
    yield Shop(made, claim_rate=0)
    made.next_id.__self__.close()  # type: ignore[attr-defined]  # the lease of the identities
    made.engine.dispose()


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Every process of the Procfile, on servers and a port of its own, for the whole run."""
    system = System(tmp_path_factory.mktemp("system"))
    try:
        system.start()
        yield system
    finally:
        system.close()
