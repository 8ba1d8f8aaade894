"""``lua/acknowledge_claims.lua``: what ended is written down, and what was rejected comes back exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import redis

from coupon_workers.runtime.lua_script import lua_script
from tests.support.claim_script import NOW_MS, ClaimScript
from tests.support.redis_dump import dump

DAY = str((NOW_MS // 1000 + 28_800) // 86_400)


@pytest.fixture
def script(redis_client: redis.Redis) -> ClaimScript:
    """A template with a daily limit, three of its ten units taken: ann's twice, bob's once."""
    made = ClaimScript(redis_client)
    made.warm(daily_limit=9)
    for claim_id, (user, request) in enumerate((("ann", "r1"), ("ann", "r2"), ("bob", "r1")), 1):
        made.claim(user, request, claim_id)
    return made


def after(entry_id: str) -> str:
    """The id that follows."""
    milliseconds, _, number = entry_id.partition("-")
    return f"{milliseconds}-{int(number) + 1}"


Issued = Sequence[tuple[int, str]]
"""Claim id and request."""

Rejected = list[tuple[int, str, str, str, str]]
"""Claim id, request, day, answer and face value."""

Batch = tuple[str, str, Issued, Rejected]


def acknowledge(
    script: ClaimScript,
    first: str,
    keep_from: str,
    issued: Issued,
    rejected: Rejected,
    *aside: str,
    redrawn: Sequence[tuple[int, int]] = (),
    held: Issued = (),
) -> int:
    """Acknowledge what lies from ``first`` to before ``keep_from``.

    ``aside``: entries that were set aside; ``redrawn``: claim ids with what the database drew for them.
    """
    keys = script.keys
    args: list[Any] = [first, keep_from, len(issued), len(rejected), len(redrawn), len(held)]
    args += [value for claim in issued for value in claim]
    args += [value for claim in rejected for value in claim]
    args += [value for claim in redrawn for value in claim]
    args += [value for claim in held for value in claim]
    args += aside
    names = [keys.stock, keys.takers, keys.requests, keys.claims, keys.pending, keys.day_prefix, keys.pool, keys.meta]
    return int(lua_script("acknowledge_claims")(script.client, names, args))


def test_issued_claims_leave_the_stream_and_are_remembered_as_issued(script: ClaimScript) -> None:
    """Stock and counts stay as the claims left them; what is behind them stays queued."""
    ids = script.entry_ids()

    given_back = acknowledge(script, ids[0], ids[2], [(1, "ann r1"), (2, "ann r2")], [])

    client, keys = script.client, script.keys
    assert 0 == given_back
    assert ids[2:] == script.entry_ids()
    assert {b"3": str(NOW_MS).encode()} == client.hgetall(keys.claims)
    assert [b"1 issued", b"2 issued", b"3 queued"] == client.hmget(keys.requests, ["ann r1", "ann r2", "bob r1"])
    assert b"7" == client.get(keys.stock)
    assert {b"ann": b"2 2", b"bob": b"1 1"} == client.hgetall(keys.takers)


def test_a_rejected_claim_gives_its_unit_and_its_users_allowance_back(script: ClaimScript) -> None:
    """Of the limit and of the day; the number it was allotted is not given again."""
    ids = script.entry_ids()

    given_back = acknowledge(script, ids[0], after(ids[0]), [], [(1, "ann r1", DAY, "1 PAUSED", "")])

    client, keys = script.client, script.keys
    assert 1 == given_back
    assert ids[1:] == script.entry_ids()
    assert b"8" == client.get(keys.stock)
    assert b"1 2" == client.hget(keys.takers, "ann")
    assert b"1" == client.hget(keys.day_prefix + DAY, "ann")
    assert b"1 PAUSED" == client.hget(keys.requests, "ann r1")
    assert not client.hexists(keys.claims, "1")


def test_the_last_claim_of_a_day_leaves_no_trace_in_it(script: ClaimScript) -> None:
    """No field of zero stays behind."""
    ids = script.entry_ids()

    acknowledge(script, ids[0], after(ids[2]), [(1, "ann r1"), (2, "ann r2")], [(3, "bob r1", DAY, "3 SOLD_OUT", "")])

    assert {b"ann": b"2"} == script.client.hgetall(script.keys.day_prefix + DAY)
    assert b"0 1" == script.client.hget(script.keys.takers, "bob")


def test_a_claim_of_a_template_without_daily_limit_gives_no_day_back(script: ClaimScript) -> None:
    """Its day is the empty text."""
    ids = script.entry_ids()

    acknowledge(script, ids[0], after(ids[0]), [], [(1, "ann r1", "", "1 PAUSED", "")])

    assert b"2" == script.client.hget(script.keys.day_prefix + DAY, "ann")
    assert not script.client.exists(script.keys.day_prefix)


def test_a_duplicate_gives_back_and_leaves_the_request_to_the_first_claim(script: ClaimScript) -> None:
    """The same request was accepted twice because Redis had lost its memory."""
    ids = script.entry_ids()

    acknowledge(script, ids[0], after(ids[0]), [], [(1, "ann r1", DAY, "77 issued", "")])

    assert b"77 issued" == script.client.hget(script.keys.requests, "ann r1")
    assert b"8" == script.client.get(script.keys.stock)


def test_a_second_acknowledgement_changes_nothing(script: ClaimScript) -> None:
    """The fence: of two calls for one batch only the one that removes an entry gives anything back."""
    ids = script.entry_ids()
    batch: Batch = (
        ids[0],
        after(ids[2]),
        [(1, "ann r1")],
        [(2, "ann r2", DAY, "2 PAUSED", ""), (3, "bob r1", DAY, "3 PAUSED", "")],
    )
    first = acknowledge(script, *batch)
    before = dump(script.client)

    second = acknowledge(script, *batch)

    assert (2, 0) == (first, second)
    assert before == dump(script.client)


def test_a_rejected_claim_gives_the_value_it_drew_back_once(script: ClaimScript) -> None:
    """To the far end of the list; an issued one keeps it, and one that drew none gives none."""
    ids = script.entry_ids()
    script.client.rpush(script.keys.pool, 700)
    batch: Batch = (
        ids[0],
        after(ids[2]),
        [(1, "ann r1")],
        [(2, "ann r2", DAY, "2 PAUSED", "900"), (3, "bob r1", DAY, "3 PAUSED", "")],
    )

    given_back = [acknowledge(script, *batch) for _ in range(2)]

    assert [2, 0] == given_back
    assert [b"900", b"700"] == script.client.lrange(script.keys.pool, 0, -1)


def test_what_the_database_drew_for_a_claim_is_passed_over_from_then_on(script: ClaimScript) -> None:
    """Once for each claim that is found queued: the list still holds it."""
    ids = script.entry_ids()
    issued: Issued = [(1, "ann r1"), (2, "ann r2"), (3, "bob r1")]

    for _ in range(2):
        acknowledge(script, ids[0], after(ids[2]), issued, [], redrawn=[(1, 800), (3, 800)])

    assert [b"2"] == script.client.hmget(script.keys.meta, ["held:800"])
    assert [] == script.entries()


def test_a_value_of_a_claim_that_redis_has_forgotten_is_not_given_back(script: ClaimScript) -> None:
    """The list that a preheat makes has it."""
    ids = script.entry_ids()
    script.client.flushdb()

    acknowledge(script, ids[0], after(ids[0]), [], [(1, "ann r1", DAY, "1 PAUSED", "900")])

    assert {} == dump(script.client)


def test_a_held_claim_is_acknowledged_once(script: ClaimScript) -> None:
    """Whoever comes late with the same batch does not undo the end that its review has had since."""
    first, _, last = script.entry_ids()
    batch = (first, after(last), [], [])
    claims = [(1, "ann r1"), (2, "ann r2"), (3, "bob r1")]
    acknowledge(script, *batch, held=claims)
    assert b"1 held" == script.client.hget(script.keys.requests, "ann r1")
    script.client.hset(script.keys.requests, "ann r1", "1 issued")

    acknowledge(script, *batch, held=claims)

    assert b"1 issued" == script.client.hget(script.keys.requests, "ann r1")


def test_an_acknowledgement_that_comes_late_spares_what_was_claimed_since(script: ClaimScript) -> None:
    """A worker was stopped between its commit and this, and its batch was acknowledged by another."""
    ids = script.entry_ids()
    batch: Batch = (ids[0], after(ids[0]), [], [(1, "ann r1", DAY, "1 PAUSED", "")])
    acknowledge(script, *batch)
    script.claim("cat", "r1", 4)
    before = dump(script.client)

    given_back = acknowledge(script, *batch)

    assert 0 == given_back
    assert before == dump(script.client)


def test_a_batch_behind_older_entries_is_not_cut_off(script: ClaimScript) -> None:
    """Redis was rewound since the batch was read: the older entries' ends are not written down, so they come again."""
    ids = script.entry_ids()

    given_back = acknowledge(script, ids[1], after(ids[2]), [(2, "ann r2")], [(3, "bob r1", DAY, "3 SOLD_OUT", "")])

    assert (1, ids[:1]) == (given_back, script.entry_ids())
    assert [b"1 queued", b"2 issued", b"3 SOLD_OUT"] == script.client.hmget(
        script.keys.requests, ["ann r1", "ann r2", "bob r1"]
    )
    assert script.client.hexists(script.keys.claims, "1")


def test_a_rejection_after_redis_lost_everything_gives_nothing_back(script: ClaimScript) -> None:
    """There is no entry, so there is nothing that had taken it; the next preheat counts from the database."""
    ids = script.entry_ids()
    script.client.flushdb()

    given_back = acknowledge(script, ids[0], after(ids[0]), [], [(1, "ann r1", DAY, "1 PAUSED", "")])

    assert 0 == given_back
    assert {} == dump(script.client)


def test_a_batch_larger_than_lua_s_stack_is_acknowledged(script: ClaimScript) -> None:
    """Five thousand issued claims, the largest ``COUPON_SETTLE_BATCH``."""
    claims = [(number, f"u{number} r") for number in range(10, 5_010)]
    script.client.hset(script.keys.claims, mapping={str(number): NOW_MS for number, _ in claims})

    given_back = acknowledge(script, script.entry_ids()[0], after(script.entry_ids()[-1]), claims, [])

    assert 0 == given_back
    assert [] == script.entries()
    assert 5_003 == script.client.hlen(script.keys.requests)


def test_entries_set_aside_at_the_head_are_cut_off_with_the_batch(script: ClaimScript) -> None:
    """Nothing is written down for them."""
    ids = script.entry_ids()
    remembered = script.client.hgetall(script.keys.requests)

    acknowledge(script, ids[0], after(ids[1]), [], [])

    assert ids[2:] == script.entry_ids()
    assert remembered == script.client.hgetall(script.keys.requests)


def test_a_claim_that_came_in_among_the_batch_s_entries_is_spared(script: ClaimScript) -> None:
    """A fail-over lost entries of the batch, and the new master's clock was behind: its claim stands among the ids."""
    ids = script.entry_ids()
    script.client.xdel(script.keys.pending, ids[1])
    script.client.hdel(script.keys.claims, "2")

    acknowledge(script, ids[0], after(ids[2]), [(1, "ann r1"), (2, "ann r2")], [])

    assert ids[2:] == script.entry_ids()
    assert {b"3"} == set(script.client.hkeys(script.keys.claims))


def test_what_was_set_aside_is_taken_out_alone_where_the_batch_cannot_be_cut_off(script: ClaimScript) -> None:
    """By its id, and only when it is no claim that waits."""
    ids = script.entry_ids()
    entry_id: Any = script.client.xadd(script.keys.pending, {"x": "y"})
    poison = entry_id.decode()

    acknowledge(script, ids[1], after(poison), [(2, "ann r2")], [], ids[2], poison)

    assert [ids[0], ids[2]] == script.entry_ids()
