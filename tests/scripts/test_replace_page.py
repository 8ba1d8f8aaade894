"""``lua/replace_page.lua``: of those who find a page that may not be shown, one takes the turn at filling it."""

from __future__ import annotations

import pytest
import redis

from coupon_workers.runtime.lua_script import lua_script

KEY = "cw:{w1}:wallet:ann"
HEAD = "epoch-1 mark-7 "


def replace(client: redis.Redis, token: str = "filling 2") -> bytes:
    """Try to take the turn."""
    word: bytes = lua_script("replace_page")(client, [KEY], [HEAD, token, 900])
    return word


def test_whoever_finds_that_page_takes_its_turn(redis_client: redis.Redis) -> None:
    """With a token's life; the next one finds the token."""
    redis_client.set(KEY, f"{HEAD}page", px=30_000)

    assert [b"TAKEN", b"CHANGED"] == [replace(redis_client, "filling 2"), replace(redis_client, "filling 3")]
    assert b"filling 2" == redis_client.get(KEY)
    assert 0 < redis_client.pttl(KEY) <= 900


@pytest.mark.parametrize("other", ["epoch-1 mark-8 page", "epoch-2 mark-7 page", "filling 1", "epoch-1", ""])
def test_another_page_and_anothers_turn_are_left(redis_client: redis.Redis, other: str) -> None:
    """A page that begins in another way is newer, or is being filled."""
    redis_client.set(KEY, other, px=30_000)

    assert b"CHANGED" == replace(redis_client)
    assert other.encode() == redis_client.get(KEY)


def test_a_page_that_is_gone_is_not_filled_in_its_name(redis_client: redis.Redis) -> None:
    """It was forgotten since: its reader begins anew."""
    assert b"CHANGED" == replace(redis_client)
    assert not redis_client.exists(KEY)
