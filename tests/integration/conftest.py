"""A shop in this process, an operator at its console, an endpoint that is told what happens, and a lone connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from coupon_workers.notify.webhook import NewWebhook
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop
from tests.support.notify_bureau import Bureau
from tests.support.notify_receiver import Receiver


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop on empty stores."""
    return Shop(services, claim_rate=0)


@pytest.fixture
def zoe(shop: Shop) -> Visitor:
    """An operator at the console."""
    return Visitor(shop, "admin")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint that takes everything."""
    with Receiver().serving() as receiver:
        yield receiver


@pytest.fixture
def bureau(services: Services) -> Bureau:
    """A bureau that reaches this machine."""
    return Bureau(services)


@pytest.fixture
def webhook(bureau: Bureau, receiver: Receiver) -> NewWebhook:
    """The receiver's webhook, for all events."""
    return bureau.webhook(receiver.url)


@pytest.fixture
def one_connection(settings: Settings, engine: Engine) -> Iterator[Engine]:
    """Everything that is asked runs on one connection, whose counters may then be looked at.

    What others have read is counted up to ten seconds later, or when they end: so they end, and are waited for.
    """
    engine.dispose()
    made = make_engine(settings, pool_size=1)
    with made.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        )
    yield made
    made.dispose()
