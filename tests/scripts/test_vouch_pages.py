"""``lua/vouch_pages.lua``: one at a time says which epoch's pages are good, and only as long as nothing was lost."""

from __future__ import annotations

import pytest
import redis

from coupon_workers.runtime.lua_script import lua_script

VOUCHED, WATCH = "cw:{w1}:vouched", "cw:{w1}:watch"


def now_ms(client: redis.Redis) -> int:
    """The clock of Redis."""
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def vouch(client: redis.Redis, before: str, now: str, epoch: str = "", until_ms: int = 0) -> bytes:
    """Call once; ``before`` is what the caller left at his last call."""
    word: bytes = lua_script("vouch_pages")(client, [VOUCHED, WATCH], [before, now, epoch, until_ms])
    return word


def test_taking_over_vouches_for_nothing_yet(redis_client: redis.Redis) -> None:
    """His mark is there from the first call on, his word from the second."""
    until_ms = now_ms(redis_client) + 900

    assert b"DONE" == vouch(redis_client, "", "a 1")
    assert (b"a 1", None) == (redis_client.get(WATCH), redis_client.get(VOUCHED))

    assert b"DONE" == vouch(redis_client, "a 1", "a 2", "epoch-1", until_ms)
    assert (b"a 2", b"epoch-1") == (redis_client.get(WATCH), redis_client.get(VOUCHED))
    assert 0 < redis_client.pttl(VOUCHED) <= 900


def test_nobody_takes_over_while_another_vouches(redis_client: redis.Redis) -> None:
    """Nothing is written."""
    vouch(redis_client, "", "a 1")
    vouch(redis_client, "a 1", "a 2", "epoch-1", now_ms(redis_client) + 60_000)

    assert b"BUSY" == vouch(redis_client, "", "b 1")
    assert (b"a 2", b"epoch-1") == (redis_client.get(WATCH), redis_client.get(VOUCHED))


def test_who_was_taken_over_from_is_told(redis_client: redis.Redis) -> None:
    """He stalled until his word was over; the other's is left as it is."""
    vouch(redis_client, "", "a 1")
    vouch(redis_client, "", "b 1")
    vouch(redis_client, "b 1", "b 2", "epoch-2", now_ms(redis_client) + 60_000)

    assert b"LOST" == vouch(redis_client, "a 1", "a 2", "epoch-1", now_ms(redis_client) + 60_000)
    assert (b"b 2", b"epoch-2") == (redis_client.get(WATCH), redis_client.get(VOUCHED))


@pytest.mark.parametrize("last", [None, "a 1"])
def test_a_redis_that_lost_the_last_call_is_noticed(redis_client: redis.Redis, last: str | None) -> None:
    """Flushed, or come back with an older state: pages that were forgotten may have come back with it."""
    if last is not None:
        redis_client.set(WATCH, last)

    assert b"LOST" == vouch(redis_client, "a 2", "a 3", "epoch-1", now_ms(redis_client) + 60_000)
    assert not redis_client.exists(VOUCHED)


def test_a_word_that_is_over_already_is_none(redis_client: redis.Redis) -> None:
    """Its giver stalled between asking for the time and saying it."""
    vouch(redis_client, "", "a 1")

    assert b"DONE" == vouch(redis_client, "a 1", "a 2", "epoch-1", now_ms(redis_client) - 1)
    assert not redis_client.exists(VOUCHED)
