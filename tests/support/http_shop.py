"""The application in this process on real stores, with an operator and a storefront; the test plays the worker."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import redis
from sqlalchemy import text

from coupon_workers.access.api_key import create_key
from coupon_workers.checking.report import check_all
from coupon_workers.claiming.settlement import drain
from coupon_workers.runtime.services import Services
from coupon_workers.schema import Base
from tests.support.empty_database import empty_database
from tests.support.http_caller import Caller, FlaskTransport
from tests.support.http_desk import Desk
from tests.support.redis_dump import dump
from web.app import create_app

PASSING = (":rate:", "worker-numbers")
"""In the names of keys that move by themselves or by being asked, whatever the answer."""


Holdings = tuple[dict[bytes, Any], dict[str, int]]


class Shop:
    """``services`` are the shop's own; ``changed`` settings go over them."""

    def __init__(self, services: Services, **changed: Any) -> None:
        self.services = replace(services, settings=services.settings.model_copy(update=changed))
        self.app = create_app(self.services)
        self.desk = Desk(self.caller("admin"))
        self.front = self.caller("storefront")

    def caller(self, *scopes: str) -> Caller:
        """Somebody with a key of these scopes; nobody's key when there are none."""
        key = create_key(self.services.engine, name="test", scopes=scopes).key if scopes else None
        return Caller(FlaskTransport(self.app), key)

    def at(self, now: datetime) -> Caller:
        """A storefront at a front whose clock stands at ``now``."""
        return Shop(replace(self.services, clock=lambda: now)).front

    def settle(self, template_id: str) -> int:
        """Do the worker's part for what is queued; how many claims ended."""
        return drain(self.services, int(template_id), 0)

    def assert_sound(self) -> None:
        """Every invariant holds (DESIGN 3); nothing may be under way."""
        assert [] == check_all(self.services, patience_s=0).breaches

    def holdings(self) -> Holdings:
        """All that Redis holds, and the rows of each table."""
        kept = {key: value for key, value in dump(self.services.redis).items() if not _passes(key)}
        return kept, rows_by_table(self.services)


def rows_by_table(services: Services) -> dict[str, int]:
    """The rows of each table."""
    names = [table.name for table in Base.metadata.sorted_tables]
    counts = ", ".join(f"(SELECT count(*) FROM {name})" for name in names)
    with services.engine.connect() as connection:
        row = connection.execute(text(f"SELECT {counts}")).one()
    return dict(zip(names, row, strict=True))


def empty_stores(services: Services) -> None:
    """Forget everything, for a shop that outlives one test."""
    empty_database(services.engine)
    client: redis.Redis = services.redis
    client.flushall()


def _passes(key: bytes) -> bool:
    return any(part.encode() in key for part in PASSING)
