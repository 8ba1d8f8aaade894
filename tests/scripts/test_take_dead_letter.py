"""``lua/take_dead_letter.lua``: a dead letter is taken once, back to its queue or for good."""

from __future__ import annotations

import pytest
import redis

from coupon_workers.runtime.lua_script import lua_script
from tests.support.redis_dump import dump

DEAD, DEAD_MESSAGES, QUEUE, MESSAGES = "q.XQ", "q.XQ.msgs", "q", "q.msgs"


@pytest.fixture
def dead(redis_client: redis.Redis) -> redis.Redis:
    """One dead letter, and one that waits."""
    redis_client.zadd(DEAD, {"m1": 1})
    redis_client.hset(DEAD_MESSAGES, "m1", "old")
    redis_client.rpush(QUEUE, "m0")
    redis_client.hset(MESSAGES, "m0", "waiting")
    return redis_client


def take(client: redis.Redis, expected: str, content: str) -> bytes:
    """Take ``m1``."""
    word: bytes = lua_script("take_dead_letter")(
        client, [DEAD, DEAD_MESSAGES, QUEUE, MESSAGES], ["m1", expected, content]
    )
    return word


def test_a_dead_letter_goes_back_to_the_end_of_its_queue(dead: redis.Redis) -> None:
    """With the content it is given."""
    assert b"TAKEN" == take(dead, "old", "new")

    assert [b"m0", b"m1"] == dead.lrange(QUEUE, 0, -1)
    assert {b"m0": b"waiting", b"m1": b"new"} == dead.hgetall(MESSAGES)
    assert not dead.exists(DEAD, DEAD_MESSAGES)


def test_a_dead_letter_is_discarded(dead: redis.Redis) -> None:
    """Nothing goes back."""
    assert b"TAKEN" == take(dead, "old", "")

    assert [b"m0"] == dead.lrange(QUEUE, 0, -1)
    assert not dead.exists(DEAD, DEAD_MESSAGES)


def test_the_second_of_two_finds_it_gone(dead: redis.Redis) -> None:
    """It is sent once."""
    take(dead, "old", "new")

    assert b"GONE" == take(dead, "old", "new")
    assert [b"m0", b"m1"] == dead.lrange(QUEUE, 0, -1)


def test_a_message_that_has_died_again_with_another_content_is_not_taken(dead: redis.Redis) -> None:
    """Whoever read the older one looks again."""
    dead.hset(DEAD_MESSAGES, "m1", "died again")
    before = dump(dead)

    assert b"GONE" == take(dead, "old", "new")
    assert before == dump(dead)
