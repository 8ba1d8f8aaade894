"""The scripts that lease and release worker numbers, word by word."""

from __future__ import annotations

import time
from typing import Any

import pytest
import redis

from coupon_workers.runtime.lua_script import lua_script

KEY = "cw:worker-numbers"
LEASE_MS = 30_000
SPAN_MS = 31_000
NOTICE_MS = 3_000
LOGICAL_MS = 1_800_000_000_000
"""The callers' clock in these tests; the script compares it with ceilings only, never with Redis's clock."""


def lease(client: redis.Redis, token: str, number: int, **changed: int) -> list[Any]:
    """Ask for ``number``; an answer as text."""
    args = {
        "count": 4,
        "lease_ms": LEASE_MS,
        "logical_ms": LOGICAL_MS,
        "span_ms": SPAN_MS,
        "horizon_ms": LOGICAL_MS + 60_000,
        "notice_ms": NOTICE_MS,
    } | changed
    answer = lua_script("lease_worker_number")(client, [KEY], [token, number, *args.values()])
    return [part.decode() if isinstance(part, bytes) else part for part in answer]


def release(client: redis.Redis, token: str, number: int, high_water_ms: int = LOGICAL_MS) -> str:
    """Give ``number`` back; the word answered."""
    word: bytes = lua_script("release_worker_number")(client, [KEY], [token, number, high_water_ms])[0]
    return word.decode()


def redis_now_ms(client: redis.Redis) -> int:
    seconds, micros = client.time()
    return int(seconds * 1000 + micros // 1000)


@pytest.fixture
def grown_up(redis_client: redis.Redis) -> redis.Redis:
    """A Redis whose hash of numbers is older than the time within which a loss is noticed."""
    redis_client.hset(KEY, "born", redis_now_ms(redis_client) - NOTICE_MS)
    return redis_client


def test_a_number_nobody_holds_is_leased_with_a_ceiling_a_span_above(grown_up: redis.Redis) -> None:
    """The record holds token, end of the lease by Redis's clock, and ceiling."""
    before_ms = redis_now_ms(grown_up)

    answer = lease(grown_up, "anna", 2)

    token, lease_until_ms, ceiling_ms = grown_up.hget(KEY, "2").decode().split()  # type: ignore[union-attr]
    assert ["LEASED", 2, "0", str(LOGICAL_MS + SPAN_MS)] == answer
    assert ("anna", LOGICAL_MS + SPAN_MS) == (token, int(ceiling_ms))
    assert before_ms + LEASE_MS <= int(lease_until_ms) <= redis_now_ms(grown_up) + LEASE_MS


def test_the_holder_renews_its_number_and_raises_its_ceiling(grown_up: redis.Redis) -> None:
    """The ceiling follows the caller's time; it does not pile up."""
    lease(grown_up, "anna", 2)

    answer = lease(grown_up, "anna", 2, logical_ms=LOGICAL_MS + 2_000)

    assert ["RENEWED", 2, str(LOGICAL_MS + SPAN_MS), str(LOGICAL_MS + 2_000 + SPAN_MS)] == answer


def test_a_renewal_never_lowers_the_ceiling(grown_up: redis.Redis) -> None:
    """The caller's clock stepped back: what was promised stays."""
    lease(grown_up, "anna", 2)

    answer = lease(grown_up, "anna", 2, logical_ms=LOGICAL_MS - 5_000)

    assert str(LOGICAL_MS + SPAN_MS) == answer[3]


def test_a_held_number_is_passed_over_for_the_next_free_one(grown_up: redis.Redis) -> None:
    """The search wraps round behind the highest number."""
    lease(grown_up, "anna", 3)

    assert ["LEASED", 0] == lease(grown_up, "ben", 3)[:2]
    assert ["LEASED", 1] == lease(grown_up, "carl", 3)[:2]


def test_an_ended_lease_is_taken_over_above_its_ceiling(grown_up: redis.Redis) -> None:
    """Whatever the dead holder gave lies at or below its ceiling."""
    lease(grown_up, "anna", 2, lease_ms=0)

    answer = lease(grown_up, "ben", 2)

    ceiling_ms = LOGICAL_MS + SPAN_MS
    assert ["LEASED", 2, str(ceiling_ms), str(ceiling_ms + SPAN_MS)] == answer


def test_a_number_taken_over_meanwhile_is_not_given_back_to_its_old_holder(grown_up: redis.Redis) -> None:
    """It gets another one."""
    lease(grown_up, "anna", 2, lease_ms=0)
    lease(grown_up, "ben", 2)

    assert ["LEASED", 3] == lease(grown_up, "anna", 2)[:2]


def test_a_number_dated_beyond_the_horizon_is_passed_over(grown_up: redis.Redis) -> None:
    """Its last holder's clock was an hour ahead."""
    lease(grown_up, "anna", 2, lease_ms=0, logical_ms=LOGICAL_MS + 3_600_000)

    assert ["LEASED", 3] == lease(grown_up, "ben", 2)[:2]


def test_when_every_number_is_held_the_answer_says_so(grown_up: redis.Redis) -> None:
    """And nothing is taken from anybody."""
    for token in ("anna", "ben", "carl", "dora"):
        lease(grown_up, token, 0)

    assert ["EXHAUSTED"] == lease(grown_up, "emil", 0)
    assert ["RENEWED", 1] == lease(grown_up, "ben", 1)[:2]


def test_a_lost_answer_does_not_cost_a_second_number(grown_up: redis.Redis) -> None:
    """Asked again from the same start, the script finds the caller's own token first."""
    lease(grown_up, "anna", 2)
    lease(grown_up, "ben", 2)

    assert ["RENEWED", 3] == lease(grown_up, "ben", 2)[:2]


def test_in_a_young_hash_a_newcomer_starts_above_whoever_was_forgotten(redis_client: redis.Redis) -> None:
    """Redis lost its data; the holder of the number has not noticed and still gives identities."""
    answer = lease(redis_client, "ben", 2)

    start_after_ms = LOGICAL_MS + NOTICE_MS
    assert ["LEASED", 2, str(start_after_ms), str(start_after_ms + SPAN_MS)] == answer


def test_a_hash_grows_up_by_redis_s_clock(redis_client: redis.Redis) -> None:
    """Once every holder has had the time to notice, newcomers start at the clock again."""
    lease(redis_client, "anna", 0, notice_ms=1)
    deadline = time.monotonic() + 5
    born_ms = int(redis_client.hget(KEY, "born") or 0)
    while redis_now_ms(redis_client) <= born_ms and time.monotonic() < deadline:
        pass

    assert ["LEASED", 1, "0"] == lease(redis_client, "ben", 1, notice_ms=1)[:3]


def test_a_released_number_is_free_at_once_above_its_newest_identity(grown_up: redis.Redis) -> None:
    """No ceiling has to be waited for: the holder said where it stopped."""
    lease(grown_up, "anna", 2)

    word = release(grown_up, "anna", 2, high_water_ms=LOGICAL_MS + 7)

    assert "RELEASED" == word
    assert ["LEASED", 2, str(LOGICAL_MS + 7)] == lease(grown_up, "ben", 2)[:3]


@pytest.mark.parametrize("number", [2, 3])
def test_only_the_holder_releases(grown_up: redis.Redis, number: int) -> None:
    """Neither another's number nor a free one changes."""
    lease(grown_up, "anna", 2)
    before = grown_up.hgetall(KEY)

    assert "NOT_HELD" == release(grown_up, "ben", number)
    assert before == grown_up.hgetall(KEY)
