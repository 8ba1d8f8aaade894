"""The checker bites where a pool is broken on purpose, and only there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from coupon_workers.checking.report import check_all
from coupon_workers.runtime.services import Services
from tests.support.pool import PoolSale, open_pool

Break = Callable[[PoolSale], object]


def sql(statement: str) -> Break:
    """Run one statement."""

    def run(sale: PoolSale) -> None:
        with sale.services.engine.begin() as connection:
            connection.execute(text(statement))

    return run


LEAST = "(SELECT min(amount_minor) FROM pool_value WHERE issued_quantity < quantity)"
BREAKS: dict[str, tuple[Break, set[str]]] = {
    "a value listed twice": (lambda s: s.services.redis.rpush(s.keys.pool, next(iter(s.left()))), {"pool_values"}),
    "a value that is no longer listed": (lambda s: s.services.redis.rpop(s.keys.pool), {"pool_values"}),
    "a list forgotten": (lambda s: s.services.redis.delete(s.keys.pool), {"pool_values"}),
    "a list forgotten, and a claim that found it empty": (
        lambda s: (s.services.redis.delete(s.keys.pool), s.claim("dan")),
        {"pool_values"},
    ),
    "a foreign value listed": (lambda s: s.services.redis.rpush(s.keys.pool, 77), {"pool_values"}),
    "a listed value passed over": (
        lambda s: s.services.redis.hset(s.keys.meta, f"held:{next(iter(s.listed()))}", 1),
        {"pool_values"},
    ),
    "a value counted as issued": (
        sql(f"UPDATE pool_value SET issued_quantity = issued_quantity + 1 WHERE amount_minor = {LEAST}"),
        {"pool_books", "pool_values"},
    ),
    "a coupon worth something else": (
        sql("UPDATE coupon SET face_value_minor = face_value_minor + 1 WHERE user_id = 'ann'"),
        {"pool_books"},
    ),
    "a coupon worth nothing": (
        sql("UPDATE coupon SET face_value_minor = NULL WHERE user_id = 'ann'"),
        {"pool_books"},
    ),
    "a pool with a value too many": (
        sql("INSERT INTO pool_value (template_id, amount_minor, quantity) VALUES (7001, 901, 1)"),
        {"pool_books", "pool_values"},
    ),
}


@pytest.fixture
def sale(services: Services) -> PoolSale:
    """A pool of which ann and bob have a value each; cat's claim is queued."""
    made = open_pool(services)
    made.claim_each(["ann", "bob"])
    made.drain()
    made.claim("cat")
    return made


def test_a_sound_pool_has_no_breach(sale: PoolSale) -> None:
    """Nor has one that was rebuilt, or is cold."""
    sale.preheat()
    rebuilt = check_all(sale.services, patience_s=0).breaches
    sale.services.redis.flushdb()

    assert [] == rebuilt
    assert [] == check_all(sale.services, patience_s=0).breaches


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_pool_is_reported(sale: PoolSale, name: str) -> None:
    """By the rule that it breaks."""
    act, expected = BREAKS[name]
    act(sale)

    broken = {breach.invariant for breach in check_all(sale.services, patience_s=0.3).breaches}

    assert expected == broken
