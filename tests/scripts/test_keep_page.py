"""``lua/keep_page.lua``: a page is kept only if nothing has changed since its reader began, and no longer than that."""

from __future__ import annotations

import redis

from coupon_workers.runtime.lua_script import lua_script

KEY = "cw:{w1}:wallet:ann"


def keep(client: redis.Redis, token: str, page: str, more_ms: int = 0) -> bytes:
    """Try to keep ``page``."""
    word: bytes = lua_script("keep_page")(client, [KEY], [token, page, more_ms])
    return word


def test_the_reader_whose_token_is_there_keeps_his_page(redis_client: redis.Redis) -> None:
    """It takes the token's place, and what is left of its life."""
    redis_client.set(KEY, "filling 1", px=900)

    assert b"KEPT" == keep(redis_client, "filling 1", "page")
    assert b"page" == redis_client.get(KEY)
    assert 0 < redis_client.pttl(KEY) <= 900


def test_a_page_may_outlive_its_token(redis_client: redis.Redis) -> None:
    """By what its reader says, from the end of the token's life on."""
    redis_client.set(KEY, "filling 1", px=900)

    assert b"KEPT" == keep(redis_client, "filling 1", "page", more_ms=20_000)
    assert 20_000 < redis_client.pttl(KEY) <= 20_900


def test_a_reader_whose_token_was_taken_away_keeps_nothing(redis_client: redis.Redis) -> None:
    """What he read has changed."""
    assert b"CHANGED" == keep(redis_client, "filling 1", "page")
    assert not redis_client.exists(KEY)


def test_a_reader_does_not_keep_in_place_of_another(redis_client: redis.Redis) -> None:
    """He began after the change, and reads what is newer."""
    redis_client.set(KEY, "filling 2", px=900)

    assert b"CHANGED" == keep(redis_client, "filling 1", "page")
    assert b"filling 2" == redis_client.get(KEY)


def test_a_reader_who_fails_gives_his_turn_back(redis_client: redis.Redis) -> None:
    """His own alone: another's is left."""
    redis_client.set(KEY, "filling 1", px=900)

    assert b"CHANGED" == keep(redis_client, "filling 2", "")
    assert b"LEFT" == keep(redis_client, "filling 1", "")
    assert not redis_client.exists(KEY)
