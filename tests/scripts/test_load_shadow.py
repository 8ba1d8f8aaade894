"""``lua/load_shadow.lua``: settled claims from the database are counted into the keys a preheat builds."""

from __future__ import annotations

import redis

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.lua_script import lua_script

KEYS = BucketKeys(7_104)
TAKERS, REQUESTS, DAYS = KEYS.shadow("takers"), KEYS.shadow("requests"), KEYS.shadow("day:")

Row = tuple[int, str, str, int, str, str]
"""Claim id, user, request, number, day, state."""


def load(client: redis.Redis, *rows: Row) -> int:
    """Add a page."""
    args = [value for row in rows for value in row]
    return int(lua_script("load_shadow")(client, [TAKERS, REQUESTS, DAYS], args))


def test_issued_claims_count_and_rejected_ones_only_keep_their_number(redis_client: redis.Redis) -> None:
    """The next number of the user is above all of them."""
    issued = load(
        redis_client,
        (1, "ann", "r1", 1, "", "issued"),
        (2, "ann", "r2", 2, "", "issued"),
        (3, "bob", "r1", 1, "", "issued"),
        (4, "ann", "r3", 3, "", "PAUSED"),
        (5, "cat", "r1", 1, "", "SOLD_OUT"),
    )

    assert 3 == issued
    assert {b"ann": b"2 3", b"bob": b"1 1", b"cat": b"0 1"} == redis_client.hgetall(TAKERS)


def test_every_request_is_remembered_with_its_claim_and_how_it_ended(redis_client: redis.Redis) -> None:
    """Spaces in a request id stay."""
    load(redis_client, (1, "ann", "my order", 1, "", "issued"), (2, "ann", "r2", 2, "", "PAUSED"))

    assert {b"ann my order": b"1 issued", b"ann r2": b"2 PAUSED"} == redis_client.hgetall(REQUESTS)


def test_a_duplicate_does_not_take_the_place_of_the_claim_it_doubles(redis_client: redis.Redis) -> None:
    """Whether that was issued or rejected."""
    load(redis_client, (1, "ann", "r1", 1, "", "issued"))
    load(
        redis_client,
        (2, "bob", "r1", 1, "", "PAUSED"),
        (3, "ann", "r1", 2, "", "DUPLICATE"),
        (4, "bob", "r1", 2, "", "DUPLICATE"),
    )

    assert {b"ann r1": b"1 issued", b"bob r1": b"2 PAUSED"} == redis_client.hgetall(REQUESTS)


def test_a_day_counts_issued_claims_only_and_no_day_counts_nowhere(redis_client: redis.Redis) -> None:
    """A page after a page adds up."""
    load(redis_client, (1, "ann", "r1", 1, "20000", "issued"), (2, "ann", "r2", 2, "20001", "issued"))
    load(redis_client, (3, "ann", "r3", 3, "20001", "issued"), (4, "ann", "r4", 4, "20001", "PAUSED"))
    load(redis_client, (5, "ann", "r5", 5, "", "issued"))

    assert {b"ann": b"1"} == redis_client.hgetall(f"{DAYS}20000")
    assert {b"ann": b"2"} == redis_client.hgetall(f"{DAYS}20001")
    assert not redis_client.exists(DAYS)


def test_rows_in_another_order_keep_the_highest_number(redis_client: redis.Redis) -> None:
    """A number allotted later may belong to a lower claim id of another process."""
    load(redis_client, (1, "ann", "r1", 9, "", "issued"), (2, "ann", "r2", 4, "", "issued"))

    assert b"2 9" == redis_client.hget(TAKERS, "ann")
