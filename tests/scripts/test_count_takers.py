"""``lua/count_takers.lua``: what a batch gave is counted at the gate, each step of a shard once."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from coupon_workers.claiming.gate_step import step_field
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.lua_script import lua_script
from tests.support.redis_dump import dump

KEYS = BucketKeys(7_104)
STEP = step_field(88, 3)
DAY = 20_000
DAY_TTL_S = 172_800


@pytest.fixture
def warm(redis_client: redis.Redis) -> redis.Redis:
    """A gate that knows ann with one claim, her third attempt."""
    redis_client.set(KEYS.generation, "g1")
    redis_client.hset(KEYS.meta, mapping={"version": 3, "total": 10})
    redis_client.hset(KEYS.takers, "ann", "1 3")
    return redis_client


def count(client: redis.Redis, start: int, end: int, *users: str, day: int | str = "", step: str = STEP) -> list[Any]:
    """Count a step; what is answered."""
    keys = [KEYS.meta, KEYS.generation, KEYS.takers, KEYS.day_prefix]
    reply: list[Any] = lua_script("count_takers")(client, keys, [step, start, end, day, *users])
    return reply


def test_each_user_of_a_step_has_one_more(warm: redis.Redis) -> None:
    """Whom the gate knows keeps the number of his last claim; whom it does not is known from now on."""
    assert [b"COUNTED"] == count(warm, 0, 3, "ann", "bob")

    assert {b"ann": b"2 3", b"bob": b"1 0"} == warm.hgetall(KEYS.takers)
    assert b"3" == warm.hget(KEYS.meta, STEP)


def test_a_user_who_is_named_three_times_has_three_more(warm: redis.Redis) -> None:
    """Uses of codes that were missed may be of one user; his day counts all of them, too."""
    assert [b"COUNTED"] == count(warm, 0, 5, "ann", "bob", "ann", "bob", "ann", day=DAY)

    assert {b"ann": b"4 3", b"bob": b"2 0"} == warm.hgetall(KEYS.takers)
    assert {b"ann": b"3", b"bob": b"2"} == warm.hgetall(f"{KEYS.day_prefix}{DAY}")


def test_a_step_is_counted_once(warm: redis.Redis) -> None:
    """Also when it comes after the next one, and when only a part of what was counted comes again."""
    count(warm, 0, 3, "ann", "bob")
    count(warm, 3, 5, "cat")
    before = dump(warm)

    replies = [count(warm, 0, 3, "ann", "bob"), count(warm, 3, 5, "cat"), count(warm, 1, 4, "bob", "cat")]

    assert [[b"STALE"]] * 3 == replies
    assert before == dump(warm)


def test_a_step_whose_forerunner_was_not_counted_is_told_where_to_begin(warm: redis.Redis) -> None:
    """Nothing is counted, whatever comes first: the shard's beginning, or a middle of it."""
    before = dump(warm)
    at_first = count(warm, 3, 5, "cat")
    unchanged = dump(warm) == before
    count(warm, 0, 3, "ann", "bob")

    later = count(warm, 5, 8, "dan")

    assert ([b"BEHIND", 0], True, [b"BEHIND", 3]) == (at_first, unchanged, later)
    assert {b"ann": b"2 3", b"bob": b"1 0"} == warm.hgetall(KEYS.takers)


def test_users_that_are_counted_in_part_are_not_counted_again(warm: redis.Redis) -> None:
    """Two workers make up for a third: their pages need not begin at the same member."""
    count(warm, 0, 3, "ann", "bob")
    before = dump(warm)

    assert [b"BEHIND", 3] == count(warm, 0, 5, "ann", "bob", "cat")
    assert [b"BEHIND", 3] == count(warm, 2, 5, "bob", "cat")

    assert before == dump(warm)


def test_shards_and_batches_are_counted_apart(warm: redis.Redis) -> None:
    """The same users in two batches have two coupons."""
    replies = [count(warm, 0, 2, "ann", step=step_field(batch, shard)) for batch, shard in [(1, 0), (1, 1), (11, 0)]]

    assert [[b"COUNTED"]] * 3 == replies
    assert b"4 3" == warm.hget(KEYS.takers, "ann")


def test_a_step_that_gave_nothing_moves_on(warm: redis.Redis) -> None:
    """All of its users were refused."""
    assert [b"COUNTED"] == count(warm, 0, 3)
    assert [b"COUNTED"] == count(warm, 3, 5, "bob", day=DAY)

    assert b"5" == warm.hget(KEYS.meta, STEP)


def test_an_empty_shard_is_no_trouble(warm: redis.Redis) -> None:
    """From nothing to nothing."""
    assert [b"COUNTED"] == count(warm, 0, 0)
    assert {b"ann": b"1 3"} == warm.hgetall(KEYS.takers)


def test_members_are_compared_as_numbers(warm: redis.Redis) -> None:
    """10 is beyond 9."""
    count(warm, 0, 9, "ann")

    assert [b"COUNTED"] == count(warm, 9, 10, "bob")
    assert [b"STALE"] == count(warm, 0, 9, "ann")


def test_a_cold_gate_is_left_to_the_preheat(warm: redis.Redis) -> None:
    """It counts the users from the database, and notes how far that was."""
    warm.delete(KEYS.generation)
    before = dump(warm)

    assert [b"NOT_WARMED"] == count(warm, 0, 3, "ann", day=DAY)

    assert before == dump(warm)


def test_the_day_is_counted_beside_and_forgotten_after_two(warm: redis.Redis) -> None:
    """Its time is set once and not prolonged (CASES 10)."""
    key = f"{KEYS.day_prefix}{DAY}"
    count(warm, 0, 3, "ann", "bob", day=DAY)
    first_ttl: Any = warm.ttl(key)
    warm.expire(key, 100)

    count(warm, 3, 5, "cat", day=DAY)
    count(warm, 0, 1, "ann", day=DAY, step=step_field(89, 0))

    assert {b"ann": b"2", b"bob": b"1", b"cat": b"1"} == warm.hgetall(key)
    assert DAY_TTL_S - 5 <= first_ttl <= DAY_TTL_S
    last_ttl: Any = warm.ttl(key)
    assert last_ttl <= 100


def test_without_a_daily_limit_no_day_is_kept(warm: redis.Redis) -> None:
    """A key more for nobody."""
    count(warm, 0, 3, "ann", "bob")

    keys: Any = warm.keys("*")
    assert {KEYS.meta, KEYS.generation, KEYS.takers} == {key.decode() for key in keys}


def test_names_are_texts(warm: redis.Redis) -> None:
    """A user may be called like a number, or with a space in it."""
    count(warm, 0, 2, "007", "a b")

    assert [b"1 0", b"1 0"] == warm.hmget(KEYS.takers, ["007", "a b"])


def test_a_thousand_users_are_counted_in_one_call(warm: redis.Redis) -> None:
    """The most there are; half of them are known, with numbers of their own."""
    users = [f"u{number}" for number in range(1_000)]
    warm.hset(KEYS.takers, mapping={user: f"2 {number}" for number, user in enumerate(users) if number % 2})
    warm.hset(f"{KEYS.day_prefix}{DAY}", mapping=dict.fromkeys(users[::5], 4))

    assert [b"COUNTED"] == count(warm, 0, 1_000, *users, day=DAY)

    takers: Any = warm.hmget(KEYS.takers, users)
    days: Any = warm.hmget(f"{KEYS.day_prefix}{DAY}", users)
    assert [f"3 {number}" if number % 2 else "1 0" for number in range(1_000)] == [value.decode() for value in takers]
    assert ["1" if number % 5 else "5" for number in range(1_000)] == [value.decode() for value in days]
