"""``lua/fill_wallet.lua``: a page is kept only if nothing has changed since its reader began."""

from __future__ import annotations

import redis

from coupon_workers.runtime.lua_script import lua_script

KEY = "cw:{w1}:wallet:ann"


def fill(client: redis.Redis, token: str, page: str) -> bytes:
    """Try to keep ``page``."""
    word: bytes = lua_script("fill_wallet")(client, [KEY], [token, page, 30_000])
    return word


def test_the_reader_whose_token_is_there_fills(redis_client: redis.Redis) -> None:
    """The page takes the token's place and lives on."""
    redis_client.set(KEY, "filling 1", px=2_000)

    assert b"KEPT" == fill(redis_client, "filling 1", "page")
    assert b"page" == redis_client.get(KEY)
    assert 2_000 < redis_client.pttl(KEY) <= 30_000


def test_a_reader_whose_token_was_taken_away_fills_nothing(redis_client: redis.Redis) -> None:
    """The wallet changed while he read."""
    assert b"CHANGED" == fill(redis_client, "filling 1", "page")
    assert not redis_client.exists(KEY)


def test_a_reader_does_not_fill_in_place_of_another(redis_client: redis.Redis) -> None:
    """He began after the change, and reads what is newer."""
    redis_client.set(KEY, "filling 2", px=2_000)

    assert b"CHANGED" == fill(redis_client, "filling 1", "page")
    assert b"filling 2" == redis_client.get(KEY)
