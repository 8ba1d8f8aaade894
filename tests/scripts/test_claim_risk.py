"""``lua/claim.lua`` with a risk policy: the part ``weigh_risk`` against a small model of it, and what it writes."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.risk.policy import RiskPolicyBody, encoded
from coupon_workers.runtime.lua_script import lua_script
from tests.support.claim_script import NOW_MS, ClaimScript, arguments
from tests.support.redis_dump import dump
from tests.support.risk import policy, rule
from tests.support.risk_model import RiskModel

WORTH = 250


def script_of(client: redis.Redis, body: RiskPolicyBody, **meta: Any) -> ClaimScript:
    """An open template with the policy, whose coupons are worth 2.50."""
    made = ClaimScript(client)
    made.warm(**({"stock": 1_000, "risk": encoded(body, WORTH)} | meta))
    return made


@pytest.mark.parametrize("pool", ["", "1"])
def test_a_refusal_takes_nothing_and_counts_for_the_rule_that_refused(redis_client: redis.Redis, pool: str) -> None:
    """It makes no key but the log's: what it counts by is there already. A value it was weighed by goes back."""
    script = script_of(redis_client, policy(rule("burst", threshold=1), rule("net", dimension="ip")), pool=pool)
    redis_client.rpush(script.keys.pool, 5, 7, 9)
    script.claim("ann", device_id="d1", ip="i1")
    before = dump(redis_client)

    answer = script.claim("bob", device_id="d1", ip="i2")

    after = dump(redis_client)
    assert ["RISK_REJECTED", "burst"] == answer
    assert {script.keys.risk_log.encode()} == set(after) - set(before)
    (counters,) = [key for key in before if before[key] != after[key]]
    assert f"{NOW_MS // 60_000} 2 0".encode() == redis_client.hget(counters, "burst device claims d1")


def test_the_log_says_who_was_refused_and_why(redis_client: redis.Redis) -> None:
    """With what fired in shadow before it."""
    script = script_of(redis_client, policy(rule("see", threshold=0, shadow=True), rule("burst", threshold=0)))

    script.claim("ann", "r1", 41, device_id="d1", ip="i1", address_hash="a1")

    ((_, noted),) = redis_client.xrange(script.keys.risk_log)
    assert {
        b"t": str(NOW_MS).encode(),
        b"c": b"41",
        b"u": b"ann",
        b"k": b"~reject see,reject burst",
        b"i": b"d1",
        b"p": b"i1",
        b"a": b"a1",
    } == noted


def test_a_claim_that_names_nothing_is_weighed_by_its_user_alone(redis_client: redis.Redis) -> None:
    """There is nothing to count the others by."""
    rules = [rule(name, dimension=name, threshold=0) for name in ("device", "ip", "address")]
    script = script_of(redis_client, policy(*rules, rule("mine", dimension="user", threshold=0)))

    assert ["RISK_REJECTED", "mine"] == script.claim("ann")


def test_a_claim_that_names_nothing_may_leave_the_names_out(redis_client: redis.Redis) -> None:
    """As with empty ones, whether it is refused or accepted with a rule that fired."""
    rules = [rule("see", dimension="user", threshold=0, shadow=True), rule("mine", dimension="user", threshold=1)]
    script = script_of(redis_client, policy(*rules))

    answers = [
        lua_script("claim")(redis_client, script.all_keys(), arguments("ann", f"r{number}", number)[:8])
        for number in (1, 2)
    ]

    assert [b"ACCEPTED", b"RISK_REJECTED"] == [answer[0] for answer in answers]
    ((_, noted),) = redis_client.xrange(script.keys.risk_log)
    named = {"i": "", "p": "", "a": ""}
    assert named.items() <= script.entries()[0].items()
    assert named == {name: noted[name.encode()].decode() for name in named}


def test_counters_go_by_themselves(redis_client: redis.Redis) -> None:
    """Two windows after the last claim of a set of users, four of the longest after that of a hash."""
    measures = ("claims", "distinct_users", "face_value_minor")
    rules = [rule(f"by_{measure}", measure=measure, threshold=9_000) for measure in measures]
    script = script_of(redis_client, policy(*rules))

    script.claim("ann", device_id="d1")

    lives = [redis_client.pttl(key) for key in redis_client.scan_iter(f"{script.keys.risk_prefix}*")]
    assert 2 == len(lives)
    assert all(0 < int(life) <= 240_000 for life in lives)


@pytest.mark.parametrize("refused", [False, True])
def test_a_count_outlives_the_hash_that_it_began_in(redis_client: redis.Redis, refused: bool) -> None:
    """The next hash takes it over, by a refusal too; it goes by itself as the first one does."""
    script = script_of(redis_client, policy(rule("burst", threshold=2)), start_ms=0)
    life_ms = 120_000
    began_ms = NOW_MS // life_ms * life_ms
    for number in range(2):
        script.claim(f"u{number}", claim_id=number + 1, device_id="d1", now_ms=began_ms - 1)
    later_ms = began_ms + (0 if refused else 45_000)

    answer = script.claim("late", claim_id=9, device_id="d1", now_ms=later_ms)

    assert ("RISK_REJECTED" if refused else "ACCEPTED") == answer[0]
    hashes = sorted(redis_client.scan_iter(f"{script.keys.risk_prefix}*"))
    assert [f"{began_ms // life_ms + offset}" for offset in (-1, 0)] == [
        key.decode().removeprefix(script.keys.risk_prefix) for key in hashes
    ]
    assert [b"1", b"0"] == [redis_client.hget(key, "first") for key in hashes]
    assert f"{later_ms // 60_000} 1 2".encode() == redis_client.hget(hashes[1], "burst device claims d1")
    assert all(0 < int(redis_client.pttl(key)) <= 2 * life_ms for key in hashes)


def test_a_policy_that_was_loaded_before_counters_had_a_life_is_weighed(redis_client: redis.Redis) -> None:
    """A gate keeps its words until its template is next changed."""
    words = encoded(policy(rule("burst", threshold=1)), WORTH).replace(f" {WORTH} 120000\n", f" {WORTH}\n")
    script = ClaimScript(redis_client)
    script.warm(risk=words)

    answers = [script.claim(user, claim_id=number, device_id="d1") for number, user in enumerate(("ann", "bob"), 1)]

    assert ["ACCEPTED", "RISK_REJECTED"] == [answer[0] for answer in answers]


def test_a_pending_entry_bears_what_fired_only_where_something_did(redis_client: redis.Redis) -> None:
    """Others are as of a template without a policy."""
    script = script_of(redis_client, policy(rule("look", threshold=1, verdict="review")))

    script.claim("ann", claim_id=1, device_id="d1")
    script.claim("bob", claim_id=2, device_id="d1", ip="i1")

    first, second = script.entries()
    assert list("curstdeh") == list(first)
    assert ("review look", "d1", "i1", "") == tuple(second[name] for name in "kipa")


def test_the_memory_of_users_is_the_thresholds(redis_client: redis.Redis) -> None:
    """Of a review, that lets everybody pass, the latest are kept: as many as tell that there are too many."""
    script = script_of(redis_client, policy(rule("share", measure="distinct_users", threshold=3, verdict="review")))

    for number in range(50):
        script.claim(f"u{number}", claim_id=number + 1, device_id="d1", now_ms=NOW_MS + number)

    (key,) = redis_client.scan_iter(f"{script.keys.risk_prefix}*")
    assert [b"u46", b"u47", b"u48", b"u49"] == redis_client.zrange(key, 0, -1)


RULES = st.builds(
    lambda dimension, measure, window_s, threshold, verdict, shadow: rule(
        "r",
        dimension="device" if dimension == "user" and measure == "distinct_users" else dimension,
        measure=measure,
        window_s=window_s,
        threshold=threshold * WORTH if measure == "face_value_minor" else threshold,
        verdict=verdict,
        shadow=shadow,
    ),
    st.sampled_from(("device", "ip", "address", "user")),
    st.sampled_from(("claims", "claims", "distinct_users", "face_value_minor", "score")),
    st.sampled_from((1, 7, 60)),
    st.integers(0, 4),
    st.sampled_from(("allow", "review", "reject", "reject")),
    st.booleans(),
)
CLAIMS = st.lists(
    st.tuples(
        st.sampled_from(("ann", "bob", "cid", "dan")),
        st.sampled_from(("", "d1", "d2")),
        st.sampled_from(("", "i1", "i2")),
        st.sampled_from(("", "a1")),
        st.sampled_from((0, 1, 400, 999, 3_500, 45_000, 130_000)),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rules=st.lists(RULES, min_size=1, max_size=5),
    missing=st.sampled_from(("allow", "review", "reject")),
    count_refused=st.booleans(),
    listed=st.dictionaries(
        st.sampled_from([("user", "dan"), ("device", "d2"), ("ip", "i2")]), st.sampled_from(("allow", "block", "none"))
    ),
    scores=st.dictionaries(st.sampled_from(("ann", "bob")), st.integers(0, 6)),
    claims=CLAIMS,
)
def test_the_script_says_what_the_model_says(
    redis_client: redis.Redis,
    rules: list[dict[str, Any]],
    missing: str,
    count_refused: bool,
    listed: dict[tuple[str, str], str],
    scores: dict[str, int],
    claims: list[tuple[str, str, str, str, int]],
) -> None:
    """Of any claims in any order: verdict, rule, and all that fired."""
    redis_client.flushall()
    body = policy(
        *(each | {"name": f"r{number}"} for number, each in enumerate(rules)),
        missing_score=missing,
        count_refused=count_refused,
    )
    script = script_of(redis_client, body, start_ms=0, end_ms=NOW_MS * 2)
    for (dimension, value), word in listed.items():
        redis_client.hset(script.keys.risk_list, f"{dimension} {value}", f"{word} 0 1")
    for user, score in scores.items():
        redis_client.hset(script.keys.risk_list, f"score {user}", f"{score} 0 1")
    model, now_ms = RiskModel(body, WORTH, listed, scores), NOW_MS

    for number, (user, device, ip, address, pause_ms) in enumerate(claims):
        now_ms += pause_ms
        claim = {"user": user, "device": device, "ip": ip, "address": address}
        verdict, by, fired = model.weigh(claim, now_ms)
        named = {"device_id": device, "ip": ip, "address_hash": address}

        answer = script.claim(user, f"q{number}", number + 1, now_ms=now_ms, backlog_limit=1_000, **named)

        if verdict == "reject":
            assert ["RISK_REJECTED", by] == answer
            assert fired == _last(redis_client, script.keys.risk_log)["k"]
        else:
            assert "ACCEPTED" == answer[0]
            assert fired == script.entries()[-1].get("k", "")


def _last(client: redis.Redis, stream: str) -> dict[str, str]:
    ((_, fields),) = client.xrevrange(stream, count=1)
    return {name.decode(): value.decode() for name, value in fields.items()}


@pytest.mark.parametrize(
    ("field", "word", "kept"),
    [("user ann", "allow 0 3", "allow 0 3"), ("user ann", "none 0 1", "block 0 2"), ("score ann", "5 0 1", "5 0 1")],
)
def test_a_gate_takes_the_later_word(redis_client: redis.Redis, field: str, word: str, kept: str) -> None:
    """In whatever order they come."""
    keys = BucketKeys(7_101)
    lua_script("note_risk_subjects")(redis_client, [keys.risk_list], ["user ann", "block 0 2"])

    lua_script("note_risk_subjects")(redis_client, [keys.risk_list], [field, word])

    assert kept.encode() == redis_client.hget(keys.risk_list, field)
