"""A shop in this process, and an operator at its console."""

from __future__ import annotations

import pytest

from coupon_workers.runtime.services import Services
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop on empty stores."""
    return Shop(services, claim_rate=0)


@pytest.fixture
def zoe(shop: Shop) -> Visitor:
    """An operator at the console."""
    return Visitor(shop, "admin")
