"""``lua/claim.lua``: limits per user, per local day and per second, the backlog, and the numbers it allots."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coupon_workers.runtime.clock import to_ms
from coupon_workers.templates.local_day import local_day_number, utc_offsets
from tests.support.claim_script import NOW_MS, ClaimScript, arguments

MANY = 1_000_000


@pytest.fixture
def script(redis_client: redis.Redis) -> ClaimScript:
    """An open template with a hundred units."""
    made = ClaimScript(redis_client)
    made.warm(stock=100)
    return made


def outcomes(script: ClaimScript, user: str, count: int, **changed: int) -> list[str]:
    """The outcomes of ``count`` different requests of a user."""
    start = script.client.incr("test:number", count)
    return [script.claim(user, f"r{start - at}", int(start) - at, **changed)[0] for at in range(count)]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_user_claims_as_often_as_the_limit_says(script: ClaimScript, limit: int) -> None:
    """And another user is not touched by it."""
    script.warm(stock=100, user_limit=limit)

    assert ["ACCEPTED"] * limit + ["LIMIT_REACHED"] * 3 == outcomes(script, "ann", limit + 3)
    assert ["ACCEPTED"] == outcomes(script, "bob", 1)


def test_numbers_rise_and_are_never_used_again_after_a_rejection(script: ClaimScript) -> None:
    """The count goes back, the number does not (DESIGN 5)."""
    script.claim("ann", "r1", 1)
    script.client.hset(script.keys.takers, "ann", "0 1")  # as the acknowledgement of a rejection leaves it

    script.claim("ann", "r2", 2)
    script.claim("ann", "r3", 3)

    assert ["1", "2", "3"] == [entry["s"] for entry in script.entries()]
    assert b"2 3" == script.client.hget(script.keys.takers, "ann")


def test_stock_is_given_to_the_last_unit_and_not_below(script: ClaimScript) -> None:
    """Three units, five users."""
    script.warm(stock=3)

    answers = [script.claim(f"u{number}", "r", number)[0] for number in range(1, 6)]

    assert ["ACCEPTED"] * 3 + ["SOLD_OUT"] * 2 == answers
    assert b"0" == script.client.get(script.keys.stock)


def test_a_stock_below_zero_is_sold_out(script: ClaimScript) -> None:
    """More was issued than Redis had known of."""
    script.warm(stock=-2)

    assert ["SOLD_OUT"] == script.claim()


def test_the_pending_stream_holds_no_more_than_the_backlog_limit(script: ClaimScript) -> None:
    """PostgreSQL is down: claims are accepted up to the limit, and again when there is room."""
    assert ["ACCEPTED", "ACCEPTED", "BACKLOG_FULL"] == outcomes(script, "ann", 3, backlog_limit=2)

    script.client.xtrim(script.keys.pending, maxlen=1, approximate=False)

    assert ["ACCEPTED"] == outcomes(script, "ann", 1, backlog_limit=2)


def on_day_of(script: ClaimScript, zone: str, *instants: datetime) -> list[str]:
    """Outcomes of one user's claims at ``instants``, one a local day of ``zone`` allowed."""
    start, end = min(instants) - timedelta(days=1), max(instants) + timedelta(days=1)
    offsets = ",".join(f"{from_s}:{offset_s}" for from_s, offset_s in utc_offsets(zone, start, end))
    script.warm(stock=100, start_ms=to_ms(start), end_ms=to_ms(end), daily_limit=1, offsets=offsets)
    return [
        script.claim("ann", f"r{number}", number, now_ms=to_ms(instant))[0]
        for number, instant in enumerate(instants, 1)
    ]


def utc(month: int, day: int, hour: int, minute: int, second: int = 0) -> datetime:
    """An instant of 2026 in UTC."""
    return datetime(2026, month, day, hour, minute, second, tzinfo=UTC)


def test_both_half_past_ones_of_the_night_the_clock_is_set_back_are_one_day(script: ClaimScript) -> None:
    """2026-11-01 01:30 EDT and 01:30 EST in New York; the day has 25 hours, and then it is over."""
    answers = on_day_of(
        script,
        "America/New_York",
        utc(11, 1, 5, 30),
        utc(11, 1, 6, 30),
        utc(11, 2, 4, 59, 59),
        utc(11, 2, 5, 0),
    )

    assert ["ACCEPTED", "DAILY_LIMIT_REACHED", "DAILY_LIMIT_REACHED", "ACCEPTED"] == answers


def test_a_second_before_and_a_second_after_midnight_are_two_days(script: ClaimScript) -> None:
    """Local midnight in Shanghai is 16:00 UTC."""
    answers = on_day_of(script, "Asia/Shanghai", utc(11, 11, 15, 59, 59), utc(11, 11, 16, 0, 1))

    assert ["ACCEPTED", "ACCEPTED"] == answers


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    zone=st.sampled_from(["America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]),
    instant=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),  # noqa: DTZ001 - made aware below
)
def test_a_claim_is_counted_on_the_local_date_of_its_instant(script: ClaimScript, zone: str, instant: datetime) -> None:
    """The script's arithmetic and the calendar of the time zone agree."""
    at = instant.replace(tzinfo=UTC, microsecond=0)
    script.client.flushdb()

    on_day_of(script, zone, at)

    assert [str(local_day_number(at, zone))] == [entry["d"] for entry in script.entries()]


def test_a_days_count_expires_two_days_after_its_first_claim_not_its_last(script: ClaimScript) -> None:
    """Set once: a count whose life began anew with each claim would never end (CASES 10)."""
    script.warm(stock=100, daily_limit=5)
    script.claim("ann", "r1", 1)
    day_key = f"{script.keys.day_prefix}{(NOW_MS // 1000 + 28_800) // 86_400}"
    script.client.expire(day_key, 1_000)

    script.claim("bob", "r2", 2)

    assert {b"ann": b"1", b"bob": b"1"} == script.client.hgetall(day_key)
    assert 0 < script.client.ttl(day_key) <= 1_000


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rate=st.one_of(st.integers(1, 60), st.sampled_from([97, 128, 333, 999, 1_000])))
def test_a_user_may_ask_as_often_at_once_as_the_rate_says_and_not_once_more(script: ClaimScript, rate: int) -> None:
    """After the wait that the refusal tells, one more passes; a millisecond earlier none."""
    script.client.flushdb()
    script.warm(stock=0)
    burst = [arguments("ann", f"r{number}", number, rate=rate) for number in range(rate + 1)]

    wait_ms = script.claim_at_once(burst)[-1][1]
    script.client.flushdb()
    script.warm(stock=0)
    later = [arguments("ann", "late", MANY, rate=rate, now_ms=NOW_MS + wait) for wait in (wait_ms - 1, wait_ms)]
    answers = script.claim_at_once([*burst, *later])

    expected = ["SOLD_OUT"] * rate + ["RATE_LIMITED", "RATE_LIMITED", "SOLD_OUT"]
    assert expected == [answer[0] for answer in answers]
    assert 0 < wait_ms <= 1_000 // rate + 1


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rate=st.integers(1, 40), gaps=st.lists(st.integers(0, 400), min_size=20, max_size=120))
def test_in_the_long_run_a_user_is_held_to_the_rate(script: ClaimScript, rate: int, gaps: list[int]) -> None:
    """Of attempts at any instants, those let through are a burst and then the rate, no matter how they come."""
    script.client.flushdb()
    script.warm(stock=0)
    instants = [NOW_MS + sum(gaps[: at + 1]) for at in range(len(gaps))]

    answers = script.claim_at_once(
        [arguments("ann", f"r{number}", number, rate=rate, now_ms=at) for number, at in enumerate(instants)]
    )

    passed = [at for at, answer in zip(instants, answers, strict=True) if answer[0] == "SOLD_OUT"]
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            assert last - first + 1 <= rate + rate * (passed[last] - passed[first]) / 1_000 + 1e-3


def test_a_rate_of_zero_is_no_limit_and_leaves_no_key(script: ClaimScript) -> None:
    """``COUPON_CLAIM_RATE=0``."""
    assert ["ACCEPTED"] * 20 == outcomes(script, "ann", 20, rate=0)
    assert [] == script.client.keys(f"{script.keys.rate_prefix}*")


def test_a_users_rate_is_his_own_and_is_forgotten_when_it_is_free_again(script: ClaimScript) -> None:
    """The key lives no longer than what it remembers."""
    first = script.claim("ann", "r1", 1, rate=1)
    second = script.claim("ann", "r2", 2, rate=1)
    other = script.claim("bob", "r1", 3, rate=1)

    left_ms = script.client.pttl(f"{script.keys.rate_prefix}ann")
    assert ["ACCEPTED", "RATE_LIMITED", "ACCEPTED"] == [first[0], second[0], other[0]]
    assert 0 < left_ms <= 1_000
