"""``take_dead_letter``: back to the queue or away, once, and only as it was read."""

from __future__ import annotations

import re

import pytest
import redis

from coupon_workers.runtime.lua_script import lua_script

KEYS = ["q.XQ", "q.XQ.msgs", "q", "q.msgs"]


def _take(client: redis.Redis, expected: bytes, content: bytes) -> str:
    answer: bytes = lua_script("take_dead_letter")(client, KEYS, ["m", expected, content])
    return answer.decode()


@pytest.fixture
def dead(redis_client: redis.Redis) -> redis.Redis:
    """A queue with one dead letter."""
    redis_client.zadd("q.XQ", {"m": 1})
    redis_client.hset("q.XQ.msgs", "m", b"old")
    return redis_client


def test_a_message_goes_back_to_its_queue_once(dead: redis.Redis) -> None:
    """With the content it was given; the second call finds it gone."""
    assert ["TAKEN", "GONE"] == [_take(dead, b"old", b"new"), _take(dead, b"old", b"new")]

    assert [b"m"] == dead.lrange("q", 0, -1)
    assert {b"m": b"new"} == dead.hgetall("q.msgs")
    assert 0 == dead.exists("q.XQ", "q.XQ.msgs")


def test_a_discarded_message_is_nowhere(dead: redis.Redis) -> None:
    """Neither dead nor waiting."""
    assert "TAKEN" == _take(dead, b"old", b"")

    assert 0 == dead.exists(*KEYS)


def test_a_message_that_died_again_with_another_content_is_left(dead: redis.Redis) -> None:
    """What was read is no longer what is there."""
    assert "GONE" == _take(dead, b"older", b"new")

    assert 2 == dead.exists(*KEYS)


def test_header_and_body_agree() -> None:
    """Every word the script returns is in its header, and the other way round; likewise keys and arguments."""
    header, _, body = lua_script("take_dead_letter").source.partition("]]")

    assert set(re.findall(r"return '(\w+)'", body)) == set(re.findall(r"\b([A-Z]{4,})\b", header.split("Returns")[1]))
    for kind in ("KEYS", "ARGV"):
        section = re.split(r"\n\n", header.split(f"{kind}\n")[1])[0]
        assert set(re.findall(rf"{kind}\[(\d+)\]", body)) == set(re.findall(r"^ +(\d+) ", section, re.MULTILINE))
