"""``lua/set_message_aside.lua``: an unreadable message goes to the dead letters, found by its content."""

from __future__ import annotations

import time

import redis

from coupon_workers.runtime.lua_script import lua_script
from tests.support.redis_dump import dump

ACKS, MESSAGES, DEAD, DEAD_MESSAGES = "acks", "messages", "dead", "dead.msgs"


def set_aside(client: redis.Redis, content: bytes) -> int:
    """Move what has this content."""
    return int(lua_script("set_message_aside")(client, [ACKS, MESSAGES, DEAD, DEAD_MESSAGES], [content]))


def test_a_fetched_message_with_the_content_is_moved(redis_client: redis.Redis) -> None:
    """With its id and its bytes as they are, dated by the server's clock."""
    redis_client.sadd(ACKS, "a", "b")
    redis_client.hset(MESSAGES, mapping={"a": b"\xff\x00{", "b": b"good"})

    assert 1 == set_aside(redis_client, b"\xff\x00{")
    assert {b"b"} == redis_client.smembers(ACKS)
    assert {b"b": b"good"} == redis_client.hgetall(MESSAGES)
    assert {b"a": b"\xff\x00{"} == redis_client.hgetall(DEAD_MESSAGES)
    died_ms = redis_client.zscore(DEAD, "a")
    assert died_ms is not None
    assert abs(died_ms / 1000 - time.time()) < 60


def test_equal_messages_are_moved_together(redis_client: redis.Redis) -> None:
    """Whoever sent one twice loses none."""
    redis_client.sadd(ACKS, "a", "b")
    redis_client.hset(MESSAGES, mapping={"a": b"bad", "b": b"bad"})

    assert 2 == set_aside(redis_client, b"bad")
    assert 0 == set_aside(redis_client, b"bad")
    assert {b"a", b"b"} == set(redis_client.hkeys(DEAD_MESSAGES))


def test_a_message_that_waits_or_was_fetched_by_another_is_not_touched(redis_client: redis.Redis) -> None:
    """Only what this worker has fetched is looked at."""
    redis_client.hset(MESSAGES, "a", b"bad")
    before = dump(redis_client)

    assert 0 == set_aside(redis_client, b"bad")
    assert before == dump(redis_client)
