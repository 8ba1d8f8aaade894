"""``lua/close_bell.lua``: a drain ends only when nothing is pending."""

from __future__ import annotations

import redis

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.lua_script import lua_script

KEYS = BucketKeys(7_102)


def close(client: redis.Redis) -> bytes:
    """Ask once, with three seconds for a bell that stays out."""
    word: bytes = lua_script("close_bell")(client, [KEYS.pending, KEYS.bell], [3_000])
    return word


def test_with_nothing_pending_the_bell_is_taken_away(redis_client: redis.Redis) -> None:
    """The next claim rings."""
    redis_client.set(KEYS.bell, "1", px=3_000)

    assert b"CLOSED" == close(redis_client)
    assert not redis_client.exists(KEYS.bell)


def test_with_a_claim_pending_the_bell_stays_out(redis_client: redis.Redis) -> None:
    """And lives on for the whole time: whoever asked goes on draining."""
    redis_client.set(KEYS.bell, "1", px=5)
    redis_client.xadd(KEYS.pending, {"c": 1})

    assert b"MORE" == close(redis_client)
    assert 1_000 < redis_client.pttl(KEYS.bell) <= 3_000


def test_a_stream_emptied_entry_by_entry_is_empty(redis_client: redis.Redis) -> None:
    """The key of a stream stays when its last entry goes."""
    entry_id = redis_client.xadd(KEYS.pending, {"c": 1})
    redis_client.xdel(KEYS.pending, entry_id)

    assert redis_client.exists(KEYS.pending)
    assert b"CLOSED" == close(redis_client)
