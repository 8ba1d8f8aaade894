"""``lua/sync_template.lua``: each version of a template acts once on its live keys."""

from __future__ import annotations

import itertools

import pytest
import redis

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.lua_script import lua_script
from tests.support.redis_dump import dump

KEYS = BucketKeys(7_103)


@pytest.fixture
def warm(redis_client: redis.Redis) -> redis.Redis:
    """Version 3, ten units of which four are taken."""
    redis_client.hset(KEYS.meta, mapping={"version": 3, "total": 10, "status": "open"})
    redis_client.set(KEYS.stock, 6)
    redis_client.set(KEYS.generation, "g1")
    return redis_client


def sync(client: redis.Redis, version: int, total: int, *fields: str) -> bytes:
    """Bring a version."""
    word: bytes = lua_script("sync_template")(
        client, [KEYS.meta, KEYS.generation, KEYS.stock, KEYS.told], [version, total, *fields]
    )
    return word


@pytest.mark.parametrize(("total", "stock"), [(15, b"11"), (10, b"6"), (4, b"0"), (2, b"-2")])
def test_the_stock_moves_by_the_difference_of_the_totals(warm: redis.Redis, total: int, stock: bytes) -> None:
    """What is taken stays taken, even when the total falls below it."""
    assert b"APPLIED" == sync(warm, 4, total, "status", "paused")

    assert stock == warm.get(KEYS.stock)
    assert [b"4", str(total).encode(), b"paused"] == warm.hmget(KEYS.meta, ["version", "total", "status"])


@pytest.mark.parametrize("version", [3, 2])
def test_a_version_that_is_known_or_older_changes_nothing(warm: redis.Redis, version: int) -> None:
    """Changes may arrive twice and in any order."""
    before = dump(warm)

    assert b"STALE" == sync(warm, version, 99, "status", "offline")
    assert before == dump(warm)


def test_versions_are_compared_as_numbers(warm: redis.Redis) -> None:
    """10 is newer than 9."""
    sync(warm, 9, 10)

    assert b"APPLIED" == sync(warm, 10, 11)
    assert b"7" == warm.get(KEYS.stock)


def test_cold_keys_are_left_to_the_preheat(warm: redis.Redis) -> None:
    """Without the generation the stock is not known to be whole; the newest version is noted for the preheat."""
    warm.delete(KEYS.generation)
    before = dump(warm)

    assert [b"NOT_WARMED"] * 2 == [sync(warm, 4, 15), sync(warm, 3, 15)]

    assert b"4" == warm.get(KEYS.told)
    warm.delete(KEYS.told)
    assert before == dump(warm)


@pytest.mark.parametrize("order", list(itertools.permutations([4, 5, 6])))
def test_in_whatever_order_changes_arrive_the_newest_holds(warm: redis.Redis, order: tuple[int, ...]) -> None:
    """Version n has a total of ten times n and a limit of n."""
    for version in (*order, *order):
        sync(warm, version, 10 * version, "user_limit", str(version))

    assert [b"6", b"60", b"6"] == warm.hmget(KEYS.meta, ["version", "total", "user_limit"])
    assert b"56" == warm.get(KEYS.stock)
