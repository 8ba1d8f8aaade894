"""``lua/swap_shadow.lua``: what a preheat has built takes the live keys' place, the pending stream counted in."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.lua_script import lua_script
from tests.support.claim_script import NOW_MS
from tests.support.redis_dump import dump

KEYS = BucketKeys(7_105)
TAKERS, REQUESTS, DAYS = KEYS.shadow("takers"), KEYS.shadow("requests"), KEYS.shadow("day:")
POOL = KEYS.shadow("pool")


@pytest.fixture
def live(redis_client: redis.Redis) -> redis.Redis:
    """Live keys of version 3 that know little of the truth."""
    redis_client.hset(KEYS.meta, mapping={"version": 3, "total": 5, "status": "open", "old": "x"})
    redis_client.set(KEYS.generation, "g1")
    redis_client.set(KEYS.stock, 77)
    redis_client.hset(KEYS.takers, "zoe", "9 9")
    redis_client.hset(KEYS.requests, "zoe r", "99 issued")
    redis_client.hset(KEYS.claims, "99", "1")
    redis_client.hset(f"{KEYS.day_prefix}20001", "zoe", 9)
    return redis_client


def pend(
    client: redis.Redis, claim_id: int, user: str, request: str, seq: int, day: str = "", value: str | None = None
) -> None:
    """Put a claim into the stream; ``value`` where the template has a pool."""
    fields: dict[Any, Any] = {"c": claim_id, "u": user, "r": request, "s": seq, "t": NOW_MS, "d": day, "e": 0, "h": ""}
    client.xadd(KEYS.pending, fields if value is None else fields | {"v": value})


def swap(
    client: redis.Redis, *, version: int = 4, total: int = 10, issued: int = 0, days: str = "20000,20001"
) -> list[Any]:
    """Swap, as generation g2."""
    keys = [
        KEYS.meta,
        KEYS.generation,
        KEYS.stock,
        KEYS.takers,
        KEYS.requests,
        KEYS.claims,
        KEYS.pending,
        KEYS.day_prefix,
        TAKERS,
        REQUESTS,
        DAYS,
        KEYS.told,
        KEYS.pool,
        POOL,
    ]
    answer: list[Any] = lua_script("swap_shadow")(
        client, keys, [version, total, issued, "g2", days, 172_800, "status", "paused"]
    )
    return answer


def test_the_shadow_takes_the_live_keys_place(live: redis.Redis) -> None:
    """Nothing of the old keys is left, and the stock is what is left of the total."""
    live.hset(TAKERS, mapping={"ann": "1 1", "bob": "2 3"})
    live.hset(REQUESTS, mapping={"ann r1": "1 issued"})
    live.hset(f"{DAYS}20001", "ann", 1)

    answer = swap(live, issued=3)

    assert [b"SWAPPED", 0] == answer
    assert {b"ann": b"1 1", b"bob": b"2 3"} == live.hgetall(KEYS.takers)
    assert {b"ann r1": b"1 issued"} == live.hgetall(KEYS.requests)
    assert {b"ann": b"1"} == live.hgetall(f"{KEYS.day_prefix}20001")
    assert 0 < live.ttl(f"{KEYS.day_prefix}20001") <= 172_800
    assert (b"7", b"g2") == (live.get(KEYS.stock), live.get(KEYS.generation))
    assert {b"version": b"4", b"total": b"10", b"status": b"paused"} == live.hgetall(KEYS.meta)
    assert not live.exists(TAKERS, REQUESTS, f"{DAYS}20001", KEYS.claims)


def test_an_empty_shadow_empties_the_live_keys(live: redis.Redis) -> None:
    """A template that nobody has claimed yet."""
    swap(live)

    assert b"10" == live.get(KEYS.stock)
    assert not live.exists(KEYS.takers, KEYS.requests, KEYS.claims, f"{KEYS.day_prefix}20001")


def test_pending_claims_are_counted_in(live: redis.Redis) -> None:
    """Each took a unit, counts for its user and its day, and is remembered as queued."""
    live.hset(TAKERS, "ann", "1 4")
    live.hset(f"{DAYS}20001", "ann", 1)
    pend(live, 11, "ann", "r2", 5, "20001")
    pend(live, 12, "bob", "r1", 1, "20001")

    answer = swap(live, issued=1)

    assert [b"SWAPPED", 2] == answer
    assert b"7" == live.get(KEYS.stock)
    assert {b"ann": b"2 5", b"bob": b"1 1"} == live.hgetall(KEYS.takers)
    assert {b"ann r2": b"11 queued", b"bob r1": b"12 queued"} == live.hgetall(KEYS.requests)
    assert {b"11": str(NOW_MS).encode(), b"12": str(NOW_MS).encode()} == live.hgetall(KEYS.claims)
    assert {b"ann": b"2", b"bob": b"1"} == live.hgetall(f"{KEYS.day_prefix}20001")
    assert 2 == live.xlen(KEYS.pending)


@pytest.mark.parametrize("state", ["issued", "PAUSED"])
def test_entries_the_database_has_settled_are_acknowledged_and_counted_once(live: redis.Redis, state: str) -> None:
    """Their worker died between commit and acknowledgement; the shadow has them already."""
    live.hset(TAKERS, "ann", "1 1")
    live.hset(REQUESTS, "ann r1", f"11 {state}")
    pend(live, 11, "ann", "r1", 1)
    pend(live, 12, "bob", "r1", 1)

    answer = swap(live, issued=1)

    assert [b"SWAPPED", 1] == answer
    assert b"8" == live.get(KEYS.stock)
    assert {b"ann": b"1 1", b"bob": b"1 1"} == live.hgetall(KEYS.takers)
    assert f"11 {state}".encode() == live.hget(KEYS.requests, "ann r1")
    assert 1 == live.xlen(KEYS.pending)


def test_a_pending_claim_whose_request_was_answered_by_another_is_left_to_settle_as_its_duplicate(
    live: redis.Redis,
) -> None:
    """It holds a unit until then, and the request stays the first claim's; 1 is not the beginning of 11."""
    live.hset(REQUESTS, "ann r1", "11 issued")
    pend(live, 1, "ann", "r1", 2)

    answer = swap(live, issued=1)

    assert [b"SWAPPED", 1] == answer
    assert b"8" == live.get(KEYS.stock)
    assert b"11 issued" == live.hget(KEYS.requests, "ann r1")


def test_a_pool_takes_the_place_of_the_old_one_and_what_the_stream_holds_of_it_is_noted(live: redis.Redis) -> None:
    """Of claims that wait; what the database has settled is not in the shadow. Older notes are gone."""
    live.rpush(KEYS.pool, 1, 2, 3)
    live.hset(KEYS.meta, "held:1", 7)
    live.rpush(POOL, 700, 800, 800, 900)
    live.expire(POOL, 3_600)
    live.hset(REQUESTS, "ann r1", "11 issued")
    pend(live, 11, "ann", "r1", 1, value="600")
    pend(live, 12, "bob", "r1", 1, value="800")
    pend(live, 13, "cat", "r1", 1, value="800")
    pend(live, 14, "dan", "r1", 1, value="")

    answer = swap(live, issued=1)

    held = {name: value for name, value in live.hgetall(KEYS.meta).items() if name.startswith(b"held:")}
    assert [b"SWAPPED", 3] == answer
    assert [b"700", b"800", b"800", b"900"] == live.lrange(KEYS.pool, 0, -1)
    assert {b"held:800": b"2"} == held
    assert -1 == live.ttl(KEYS.pool)
    assert not live.exists(POOL)


def test_a_pool_of_which_nothing_is_left_leaves_no_list(live: redis.Redis) -> None:
    """Nor does a template that has none."""
    live.rpush(KEYS.pool, 1, 2, 3)

    swap(live)

    assert not live.exists(KEYS.pool)


def test_more_taken_than_there_is_leaves_a_stock_below_zero(live: redis.Redis) -> None:
    """Redis had been rewound: what is too much will be rejected, and comes back then."""
    for number in range(3):
        pend(live, 20 + number, f"u{number}", "r", 1)

    swap(live, total=10, issued=9)

    assert b"-2" == live.get(KEYS.stock)


def test_a_newer_version_in_the_live_keys_stops_the_swap(live: redis.Redis) -> None:
    """A change came to the live keys after the caller read the template: nothing is touched."""
    live.hset(TAKERS, "ann", "1 1")
    live.rpush(POOL, 700)
    pend(live, 11, "ann", "r1", 1, value="700")
    before = dump(live)

    assert [b"STALE"] == swap(live, version=2)
    assert before == dump(live)


def test_the_same_version_swaps_and_so_does_an_older_one_onto_cold_keys(live: redis.Redis) -> None:
    """What cold keys say of their version is worth nothing."""
    same = swap(live, version=3)
    live.delete(KEYS.generation)
    older = swap(live, version=2)

    assert [[b"SWAPPED", 0]] * 2 == [same, older]


CLAIM = {"c": "1", "u": "ann", "r": "r1", "s": "1", "t": str(NOW_MS), "d": "", "e": "0", "h": ""}


@pytest.mark.parametrize(
    "fields",
    [
        {"x": "y"},
        *({name: value for name, value in CLAIM.items() if name != missing} for missing in CLAIM),
        *(CLAIM | {name: "many"} for name in "cste"),
        *(CLAIM | {name: "-1"} for name in "cst"),
        *(CLAIM | {name: "1" * 40} for name in "cste"),
        CLAIM | {"u": ""},
        *(CLAIM | {"v": value} for value in ("-1", "many", "1" * 40)),
    ],
)
def test_an_entry_no_claim_can_be_read_from_is_left_to_settling(live: redis.Redis, fields: dict[Any, Any]) -> None:
    """It took nothing that is known of, and it does not stop the swap half-way."""
    live.xadd(KEYS.pending, fields)
    pend(live, 12, "bob", "r1", 1)

    answer = swap(live)

    assert [b"SWAPPED", 1] == answer
    assert (2, b"9", b"g2") == (live.xlen(KEYS.pending), live.get(KEYS.stock), live.get(KEYS.generation))
    assert {b"bob": b"1 1"} == live.hgetall(KEYS.takers)


def test_a_claim_of_a_day_long_past_leaves_no_key_behind(live: redis.Redis) -> None:
    """Its day's count can matter to nobody any more, and a shadow has no expiry."""
    pend(live, 11, "ann", "r1", 1, "19000")

    swap(live)

    days: Any = live.keys("*day:*")
    assert [] == days


def test_a_build_older_than_what_the_cold_gate_was_told_does_not_open_it(redis_client: redis.Redis) -> None:
    """It was paused while the build was under way, and the pause has been answered."""
    redis_client.set(KEYS.told, 5)

    refused, opened = swap(redis_client, version=4), swap(redis_client, version=5)

    assert ([b"STALE"], [b"SWAPPED", 0]) == (refused, opened)
    assert not redis_client.exists(KEYS.told)


def test_what_was_a_shadow_is_kept_for_good(redis_client: redis.Redis) -> None:
    """Only a shadow that is never swapped goes by itself."""
    redis_client.hset(TAKERS, mapping={"ann": "1 1"})
    redis_client.expire(TAKERS, 3_600)

    swap(redis_client)

    assert -1 == redis_client.ttl(KEYS.takers)
