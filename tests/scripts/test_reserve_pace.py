"""``lua/reserve_pace.lua``: work of a lane keeps to a rate while claims come."""

from __future__ import annotations

import pytest
import redis

from coupon_workers.runtime.lua_script import lua_script

LINE, SECOND, BEFORE = "{pace}:test", "{pace}:claims:8", "{pace}:claims:7"
NOW_MS = 1_796_000_000_000
COST_US = 100_000
THRESHOLD = 50


def reserve(client: redis.Redis, now_ms: int = NOW_MS, cost_us: int = COST_US) -> int:
    """Reserve a tenth of a second."""
    wait_ms: int = lua_script("reserve_pace")(client, [LINE, SECOND, BEFORE], [now_ms, cost_us, THRESHOLD])
    return wait_ms


@pytest.mark.parametrize("counts", [{}, {SECOND: 49}, {BEFORE: 49}, {SECOND: 30, BEFORE: 30}])
def test_while_few_claims_come_nobody_waits_and_nothing_is_reserved(
    redis_client: redis.Redis, counts: dict[str, int]
) -> None:
    """A second's claims are what counts, not those of two."""
    for key, number in counts.items():
        redis_client.set(key, number)

    assert [-1, -1] == [reserve(redis_client), reserve(redis_client)]
    assert not redis_client.exists(LINE)


@pytest.mark.parametrize("second", [SECOND, BEFORE])
def test_while_claims_come_each_begins_where_the_one_before_ends(redis_client: redis.Redis, second: str) -> None:
    """The first at once; what this second has not seen yet, the one before has."""
    redis_client.set(second, THRESHOLD)

    assert [0, 100, 200, 250] == [
        reserve(redis_client),
        reserve(redis_client),
        reserve(redis_client, cost_us=50_000),
        reserve(redis_client),
    ]


def test_time_that_nobody_used_is_not_made_up_for(redis_client: redis.Redis) -> None:
    """Else a burst would come after a rest."""
    redis_client.set(SECOND, THRESHOLD)
    reserve(redis_client)

    assert [0, 100] == [reserve(redis_client, NOW_MS + 60_000), reserve(redis_client, NOW_MS + 60_000)]


def test_the_line_is_gone_when_it_has_passed(redis_client: redis.Redis) -> None:
    """Nothing is left behind by work that is over; with no instant given the server's clock holds."""
    redis_client.set(SECOND, THRESHOLD)

    reserve(redis_client, now_ms=0)
    reserve(redis_client, now_ms=0)

    assert 100 < redis_client.pttl(LINE) <= 200


def test_work_that_costs_nothing_leaves_a_line_that_ends(redis_client: redis.Redis) -> None:
    """Redis takes no life of zero."""
    redis_client.set(SECOND, THRESHOLD)

    assert 0 == reserve(redis_client, now_ms=0, cost_us=0)
    assert redis_client.pttl(LINE) <= 1
