"""A shop in this process, an operator at its console, and an endpoint that is told what happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coupon_workers.notify.webhook import NewWebhook
from coupon_workers.runtime.services import Services
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
