"""All that the database holds, before and after: what is refused leaves no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import text

from coupon_workers.runtime.services import Services
from coupon_workers.schema import Base
from tests.support.order_shop import Json, OrderShop, refused

MOVING = frozenset({"api_key", "idempotency"})
"""Tables that are written by being asked, whatever the answer."""

BROKEN = ("ORDER_BROKEN", {"order_no": "o1"})
"""The refusal of an order ``o1`` whose books were broken behind our back."""

Books = dict[str, list[str]]


def books(services: Services) -> Books:
    """Every row of every table, as text, sorted; empty tables are left out."""
    with services.engine.connect() as connection:
        found = {
            table.name: sorted(connection.scalars(text(f"SELECT t::text FROM {table.name} t")))
            for table in Base.metadata.sorted_tables
            if table.name not in MOVING
        }
    return {name: rows for name, rows in found.items() if rows}


@contextmanager
def nothing_written(services: Services) -> Iterator[None]:
    """The database holds afterwards what it held before, to the letter."""
    before = books(services)
    yield
    assert before == books(services)


def refused_without_a_trace(shop: OrderShop, call: Callable[[], Any]) -> tuple[str, Json]:
    """The refusal that ``call`` meets (see ``refused``), which has written nothing."""
    with nothing_written(shop.services):
        return refused(call)
