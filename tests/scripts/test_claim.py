"""``lua/claim.lua``: every outcome, their order of precedence, and what each writes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.lua_script import SCRIPTS, lua_script
from tests.support.claim_script import NOW_MS, RATE, ClaimScript, arguments, as_text
from tests.support.redis_dump import dump


@pytest.fixture
def script(redis_client: redis.Redis) -> ClaimScript:
    """An open template with ten units."""
    made = ClaimScript(redis_client)
    made.warm()
    return made


def test_an_accepted_claim_takes_a_unit_counts_the_user_and_is_queued(script: ClaimScript) -> None:
    """All in one step, and the answer says when and whether to ring."""
    answer = script.claim("ann", "r1", 41, channel="app")

    client, keys = script.client, script.keys
    expected = {"c": "41", "u": "ann", "r": "r1", "s": "1", "t": str(NOW_MS), "d": "", "e": "0", "h": "app"}
    assert ["ACCEPTED", str(NOW_MS), 1] == answer
    assert [expected] == script.entries()
    assert b"9" == client.get(keys.stock)
    assert {b"ann": b"1 1"} == client.hgetall(keys.takers)
    assert {b"ann r1": b"41 queued"} == client.hgetall(keys.requests)
    assert {b"41": str(NOW_MS).encode()} == client.hgetall(keys.claims)


def test_an_entry_bears_the_epoch_of_its_acceptance(script: ClaimScript) -> None:
    """A pause raises the epoch, so that what was accepted before is known by it."""
    script.client.hset(script.keys.meta, "epoch", 7)

    script.claim()

    assert ["7"] == [entry["e"] for entry in script.entries()]


def test_the_bell_is_rung_once_until_it_is_answered_or_forgotten(script: ClaimScript) -> None:
    """One drain serves them all; a lost bell is rung again after its life."""
    rings = [script.claim(f"u{number}", "r", number)[2] for number in range(1, 4)]
    left_ms: Any = script.client.pttl(script.keys.bell)
    script.client.delete(script.keys.bell)

    assert [1, 0, 0] == rings
    assert 0 < left_ms <= 3_000
    assert 1 == script.claim("dan", "r", 4)[2]


def test_now_of_zero_is_the_clock_of_redis(script: ClaimScript) -> None:
    """One clock opens a sale for all fronts."""
    script.warm(start_ms=0)
    seconds, micros = script.client.time()

    accepted_ms = int(script.claim(now_ms=0)[1])

    assert 0 <= accepted_ms - (seconds * 1000 + micros // 1000) < 5_000


@pytest.mark.parametrize("state", ["queued", "issued", "PAUSED", "SOLD_OUT", "LIMIT_REACHED", "DUPLICATE"])
@pytest.mark.parametrize("warm", [True, False])
def test_a_request_that_was_accepted_before_is_answered_by_its_claim(
    script: ClaimScript, state: str, warm: bool
) -> None:
    """Whatever became of it, and even while the template is cold: nothing is written."""
    script.client.hset(script.keys.requests, "ann r1", f"41 {state}")
    if not warm:
        script.client.delete(script.keys.generation)
    before = dump(script.client)

    answer = script.claim("ann", "r1", 42)

    assert ["REPLAYED", "41", state] == answer
    assert before == dump(script.client)


def test_a_request_id_belongs_to_its_user(script: ClaimScript) -> None:
    """The same id of another user, or another id of the same user, is another request."""
    outcomes = [
        script.claim(user, request, claim_id)[0]
        for claim_id, (user, request) in enumerate([("ann", "r1"), ("bob", "r1"), ("ann", "r2"), ("ann", "r1")], 1)
    ]

    assert ["ACCEPTED", "ACCEPTED", "ACCEPTED", "REPLAYED"] == outcomes


def test_a_request_id_with_a_space_is_not_another_users_request(script: ClaimScript) -> None:
    """User ids have no spaces, so the first space parts user and request."""
    script.claim("ann", "b r1", 1)

    assert "ACCEPTED" == script.claim("ann", "b", 2)[0]
    assert ["REPLAYED", "1", "queued"] == script.claim("ann", "b r1", 3)


@pytest.mark.parametrize(
    ("asked", "allowed", "expected"),
    [
        ("app", "", "ACCEPTED"),
        ("app", ",app,h5,", "ACCEPTED"),
        ("h5", ",app,h5,", "ACCEPTED"),
        ("", ",app,h5,", "ACCEPTED"),
        ("web", ",app,h5,", "NOT_ELIGIBLE"),
        ("ap", ",app,", "NOT_ELIGIBLE"),
        ("app,h5", ",app,h5,x,", "NOT_ELIGIBLE"),
        (".", ",app,", "NOT_ELIGIBLE"),
        ("%a", ",app,", "NOT_ELIGIBLE"),
    ],
)
def test_a_channel_must_be_one_of_the_templates(script: ClaimScript, asked: str, allowed: str, expected: str) -> None:
    """Compared as plain text; a claim that names no channel is let in, and so is any when the template names none."""
    script.warm(channels=allowed)

    assert expected == script.claim(channel=asked)[0]


def test_the_window_is_half_open(script: ClaimScript) -> None:
    """The first millisecond is in, the end is out; the answer tells when it starts."""
    script.warm(start_ms=NOW_MS, end_ms=NOW_MS + 10)

    answers = [
        script.claim("u", f"r{number}", number, now_ms=NOW_MS + at) for number, at in enumerate((-1, 0, 9, 10), 1)
    ]

    assert ["NOT_STARTED", NOW_MS] == answers[0]
    assert ["ACCEPTED", "ACCEPTED", "ENDED"] == [answer[0] for answer in answers[1:]]


def test_a_forgotten_script_is_loaded_again(script: ClaimScript) -> None:
    """A server that was replaced does not know it; the same call succeeds, once."""
    script.client.script_flush()

    assert "ACCEPTED" == script.claim()[0]
    assert 1 == len(script.entries())
    assert [True] == script.client.script_exists(lua_script("claim").sha)


POOL_OF_THREE = [700, 800, 900]


def with_pool(script: ClaimScript, *values: int, **meta: str | int) -> None:
    """An open template of random amounts; the last value is drawn first."""
    script.warm(pool="1", **meta)
    script.client.rpush(script.keys.pool, *values)


def listed(script: ClaimScript) -> list[bytes]:
    """The values that nobody has drawn."""
    values: Any = script.client.lrange(script.keys.pool, 0, -1)
    return list(values)


def test_a_claim_of_a_template_with_a_pool_draws_its_next_value(script: ClaimScript) -> None:
    """It goes with the claim, and nobody else gets it; all the rest is as ever."""
    with_pool(script, *POOL_OF_THREE)

    for number, user in enumerate(("ann", "bob"), 1):
        script.claim(user, "r1", number)

    expected = {"c": "1", "u": "ann", "r": "r1", "s": "1", "t": str(NOW_MS), "d": "", "e": "0", "h": "", "v": "900"}
    assert expected == script.entries()[0]
    assert ["900", "800"] == [entry["v"] for entry in script.entries()]
    assert [b"700"] == listed(script)
    assert b"8" == script.client.get(script.keys.stock)


def test_a_template_without_a_pool_draws_nothing(script: ClaimScript) -> None:
    """Whatever lies under the key."""
    script.client.rpush(script.keys.pool, 5)

    script.claim()

    assert ["v" not in entry for entry in script.entries()] == [True]
    assert [b"5"] == listed(script)


def test_a_replay_and_a_refusal_draw_nothing(script: ClaimScript) -> None:
    """The list is as it was."""
    with_pool(script, *POOL_OF_THREE, user_limit=1)
    script.claim("ann", "r1", 1)
    before = dump(script.client)

    assert ["REPLAYED", "1", "queued"] == script.claim("ann", "r1", 2)
    assert ["LIMIT_REACHED"] == script.claim("ann", "r2", 3)
    assert before == dump(script.client)


def test_values_that_queued_claims_hold_are_passed_over_as_often_as_they_are_held(script: ClaimScript) -> None:
    """A preheat lists all that the database has left, and notes what the stream has of it."""
    with_pool(script, 700, 800, 900, 800, 800, 900)
    script.client.hset(script.keys.meta, mapping={"held:900": 1, "held:800": 2})

    for number, user in enumerate(("ann", "bob", "cat"), 1):
        script.claim(user, "r1", number)

    assert ["900", "800", "700"] == [entry["v"] for entry in script.entries()]
    assert [] == listed(script)
    assert [None, None] == script.client.hmget(script.keys.meta, ["held:900", "held:800"])


def test_a_claim_that_finds_the_list_empty_is_accepted_without_a_value(script: ClaimScript) -> None:
    """Stock and list disagree: the settling draws for it."""
    with_pool(script, 900)
    script.client.hset(script.keys.meta, "held:900", 1)

    assert "ACCEPTED" == script.claim()[0]
    assert [""] == [entry["v"] for entry in script.entries()]


def test_the_largest_amount_is_drawn_to_the_last_digit(script: ClaimScript) -> None:
    """It is a text to the script; one less of it is held than is listed."""
    with_pool(script, 2**53 - 1, 2**53 - 1)
    script.client.hset(script.keys.meta, f"held:{2**53 - 1}", 1)

    script.claim()

    assert ["9007199254740991"] == [entry["v"] for entry in script.entries()]


def test_outcomes_stand_in_the_order_of_the_scripts_header() -> None:
    """The enum, the header and the body tell one order."""
    source = (SCRIPTS / "claim.lua").read_text(encoding="utf-8")
    header, _, body = source.partition("]]\n")

    in_enum = [outcome.value for outcome in ClaimOutcome if outcome is not ClaimOutcome.TEMPLATE_NOT_FOUND]

    assert in_enum == re.findall(r"^ {2}\{([A-Z_]+)", header, re.MULTILINE)
    assert in_enum == re.findall(r"return \{ '([A-Z_]+)'", body)


CONDITIONS = (
    ClaimOutcome.REPLAYED,
    ClaimOutcome.NOT_WARMED,
    ClaimOutcome.RATE_LIMITED,
    ClaimOutcome.ENDED,
    ClaimOutcome.NOT_STARTED,
    ClaimOutcome.PAUSED,
    ClaimOutcome.NOT_ELIGIBLE,
    ClaimOutcome.LIMIT_REACHED,
    ClaimOutcome.DAILY_LIMIT_REACHED,
    ClaimOutcome.SOLD_OUT,
    ClaimOutcome.BACKLOG_FULL,
)


def set_up(script: ClaimScript, holds: frozenset[ClaimOutcome], by_status: bool, has_pool: bool) -> dict[str, Any]:
    """Make exactly the conditions in ``holds`` true; the arguments that go with them."""
    client, keys = script.client, script.keys
    client.flushdb()
    ended_by_status = by_status and ClaimOutcome.PAUSED not in holds
    status = "paused" if ClaimOutcome.PAUSED in holds else "open"
    if ClaimOutcome.ENDED in holds and ended_by_status:
        status = "offline"
    script.warm(
        stock=0 if ClaimOutcome.SOLD_OUT in holds else 5,
        status=status,
        start_ms=NOW_MS + 1 if ClaimOutcome.NOT_STARTED in holds else NOW_MS,
        end_ms=NOW_MS if ClaimOutcome.ENDED in holds and not ended_by_status else NOW_MS + 1,
        channels=",h5," if ClaimOutcome.NOT_ELIGIBLE in holds else ",app,",
        user_limit=2,
        daily_limit=1,
        pool="1" if has_pool else "",
    )
    client.rpush(keys.pool, *POOL_OF_THREE)
    client.hset(keys.takers, "ann", f"{2 if ClaimOutcome.LIMIT_REACHED in holds else 1} 3")
    day = (NOW_MS // 1000 + 28_800) // 86_400
    client.hset(f"{keys.day_prefix}{day}", "ann", 1 if ClaimOutcome.DAILY_LIMIT_REACHED in holds else 0)
    if ClaimOutcome.NOT_WARMED in holds:
        client.delete(keys.generation)
    if ClaimOutcome.REPLAYED in holds:
        client.hset(keys.requests, "ann r1", "9 issued")
    if ClaimOutcome.RATE_LIMITED in holds:
        client.set(f"{keys.rate_prefix}ann", (NOW_MS + 60_000) * 1_000)
    client.xadd(keys.pending, {"c": 1})
    return {"channel": "app", "rate": 5, "backlog_limit": 1 if ClaimOutcome.BACKLOG_FULL in holds else 2}


@settings(
    max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(holds=st.frozensets(st.sampled_from(CONDITIONS)), by_status=st.booleans(), has_pool=st.booleans())
def test_of_all_conditions_the_first_in_order_is_answered_and_a_refusal_writes_nothing(
    script: ClaimScript, holds: frozenset[ClaimOutcome], by_status: bool, has_pool: bool
) -> None:
    """Whatever else is true; what passed the rate check is counted there and nowhere else."""
    asked = set_up(script, holds, by_status, has_pool)
    before = dump(script.client, without=RATE)

    answer = as_text(lua_script("claim")(script.client, script.all_keys(), arguments("ann", "r1", 7, **asked)))

    expected = next((outcome for outcome in ClaimOutcome if outcome in holds), ClaimOutcome.ACCEPTED)
    assert expected == answer[0]
    assert (expected is ClaimOutcome.ACCEPTED) == (before != dump(script.client, without=RATE))
