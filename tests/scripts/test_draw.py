"""The draw script alone: order of precedence, limits, days, what a refusal leaves."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from coupon_workers.lottery.draw_gate import draw_keys
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.runtime.lua_script import lua_script
from tests.support.claim_script import DAY_MS, NOW_MS, as_text
from tests.support.redis_dump import dump

KEYS = LotteryKeys(7_301)


def warm(client: redis.Redis, **meta: str | int) -> None:
    """An open lottery of three prizes without limits, except what ``meta`` says; of the second one is left."""
    fields: dict[Any, Any] = {
        "version": 1,
        "status": "open",
        "start_ms": NOW_MS - DAY_MS,
        "end_ms": NOW_MS + DAY_MS,
        "user_limit": "",
        "daily_limit": "",
        "offsets": f"{NOW_MS // 1000 - 10 * 86_400}:28800",
        "weights": "1:100,2:900,3:999000",
        "prize:1": "77 20 off",
        "prize:2": "78 5 off",
        "prize:3": " Thank you",
    }
    client.hset(KEYS.meta, mapping=fields | meta)
    client.hset(KEYS.stock, mapping={"1": 5, "2": 1, "3": 9})
    client.set(KEYS.generation, "g1")


def draw(client: redis.Redis, user: str = "ann", request: str = "r1", **changed: Any) -> list[Any]:
    """Ask once; ARGV in the order of the script's header."""
    values = {"draw_id": 1, "user": user, "request": request, "now_ms": NOW_MS, "number": 0, "backlog_limit": 100}
    args = (values | {"rate": 0, "bell_ttl_ms": 3_000} | changed).values()
    return as_text(lua_script("draw")(client, draw_keys(KEYS), list(args)))


@pytest.mark.parametrize(
    ("number", "prize_no", "prize"),
    [(0, 1, "77 20 off"), (99, 1, "77 20 off"), (100, 2, "78 5 off"), (999, 2, "78 5 off"), (1_000, 3, " Thank you")],
)
def test_a_number_wins_its_prize(redis_client: redis.Redis, number: int, prize_no: int, prize: str) -> None:
    """And takes one of it."""
    warm(redis_client)

    assert ["DRAWN", prize_no, prize, 1] == draw(redis_client, number=number)
    assert {1: 5, 2: 1, 3: 9}[prize_no] - 1 == int(redis_client.hget(KEYS.stock, str(prize_no)) or 0)  # type: ignore[arg-type]  # no awaitable


def test_an_exhausted_prize_falls_to_none_and_never_below_nought(redis_client: redis.Redis) -> None:
    """The draw counts all the same."""
    warm(redis_client)

    drawn = [draw(redis_client, f"u{number}", draw_id=number, number=500)[1] for number in range(1, 4)]

    assert [2, 0, 0] == drawn
    assert b"0" == redis_client.hget(KEYS.stock, "2")
    assert 3 == redis_client.xlen(KEYS.pending)
    assert b"1" == redis_client.hget(KEYS.takers, "u3")


def test_the_same_request_is_answered_with_its_prize(redis_client: redis.Redis) -> None:
    """Whatever number comes with it, and whatever has become of the lottery."""
    warm(redis_client)
    draw(redis_client, draw_id=5)
    redis_client.delete(KEYS.generation)

    again = draw(redis_client, draw_id=6, number=5_000)

    assert ["REPLAYED", "5", 1, "queued", "77 20 off"] == again


REFUSALS: dict[str, tuple[dict[str, Any], dict[str, Any], list[Any]]] = {
    "over": ({"end_ms": NOW_MS}, {}, ["ENDED"]),
    "ended before its start": ({"status": "ended", "start_ms": NOW_MS + 1}, {}, ["ENDED"]),
    "not started": ({"start_ms": NOW_MS + 1, "status": "paused"}, {}, ["NOT_STARTED", NOW_MS + 1]),
    "not approved": ({"status": "waiting"}, {}, ["NOT_STARTED", 0]),
    "paused": ({"status": "paused", "user_limit": 0}, {}, ["PAUSED"]),
    "limit before day": ({"user_limit": 0, "daily_limit": 0}, {}, ["LIMIT_REACHED"]),
    "day before backlog": ({"daily_limit": 0}, {"backlog_limit": 0}, ["DAILY_LIMIT_REACHED"]),
    "backlog": ({}, {"backlog_limit": 0}, ["BACKLOG_FULL"]),
}


@pytest.mark.parametrize("name", sorted(REFUSALS))
def test_a_refusal_writes_nothing(redis_client: redis.Redis, name: str) -> None:
    """When two would apply the earlier is answered."""
    meta, changed, expected = REFUSALS[name]
    warm(redis_client, **meta)
    before = dump(redis_client)

    assert expected == draw(redis_client, **changed)
    assert before == dump(redis_client)


def test_the_time_of_a_lottery_is_half_open(redis_client: redis.Redis) -> None:
    """From its first millisecond on, and not at its end."""
    warm(redis_client, start_ms=NOW_MS, end_ms=NOW_MS + 2)

    outcomes = [
        draw(redis_client, request=f"r{moment}", draw_id=moment + 2, now_ms=NOW_MS + moment)[0]
        for moment in range(-1, 3)
    ]

    assert ["NOT_STARTED", "DRAWN", "DRAWN", "ENDED"] == outcomes


def test_a_cold_lottery_says_so_and_a_hasty_user_waits(redis_client: redis.Redis) -> None:
    """Before anything else is looked at."""
    cold = draw(redis_client)
    warm(redis_client, status="paused")
    hasty = [draw(redis_client, request=f"r{number}", rate=1)[0] for number in range(2)]

    assert (["NOT_WARMED"], ["PAUSED", "RATE_LIMITED"]) == (cold, hasty)


def test_a_day_is_a_local_date(redis_client: redis.Redis) -> None:
    """A second before midnight in Shanghai and a second after are two days; the key ends in the day and expires."""
    warm(redis_client, daily_limit=1)
    midnight_ms = (NOW_MS // DAY_MS) * DAY_MS + 16 * 3_600_000

    outcomes = [
        draw(redis_client, request=f"r{number}", draw_id=number, now_ms=midnight_ms + late_ms)[0]
        for number, late_ms in enumerate((-1_000, -500, 1_000), start=1)
    ]

    day = NOW_MS // DAY_MS
    assert ["DRAWN", "DAILY_LIMIT_REACHED", "DRAWN"] == outcomes
    assert {f"{KEYS.day_prefix}{each}".encode() for each in (day, day + 1)} == set(
        redis_client.keys(f"{KEYS.day_prefix}*")  # type: ignore[arg-type]  # no awaitable
    )
    assert int(redis_client.ttl(f"{KEYS.day_prefix}{day}")) > 0  # type: ignore[arg-type]  # likewise


def test_an_entry_goes_only_while_it_holds_the_draw(redis_client: redis.Redis) -> None:
    """Where Redis was rewound another draw may stand under the id; a wrong gate is cold from then on."""
    warm(redis_client)
    draw(redis_client, draw_id=5)
    [(entry_id, _)] = redis_client.xrange(KEYS.pending)  # type: ignore[misc]  # no awaitable
    names = [KEYS.requests, KEYS.pending, KEYS.generation]

    other = lua_script("acknowledge_draws")(redis_client, names, ["", entry_id, 6, "ann r9", "6 1 settled"])
    own = lua_script("acknowledge_draws")(redis_client, names, ["1", entry_id, 5, "ann r1", "5 1 settled"])
    again = lua_script("acknowledge_draws")(redis_client, names, ["", entry_id, 5, "ann r1", "5 1 settled"])

    assert (0, 1, 0) == (other, own, again)
    assert {b"ann r1": b"5 1 settled"} == redis_client.hgetall(KEYS.requests)
    assert 0 == redis_client.exists(KEYS.generation)


def test_each_version_of_a_lottery_applies_once(redis_client: redis.Redis) -> None:
    """An older one never; a cold gate remembers what it was told."""
    names = [KEYS.meta, KEYS.generation, KEYS.told]

    cold = lua_script("sync_lottery")(redis_client, names, [3, "status", "paused"])
    told = redis_client.get(KEYS.told)
    warm(redis_client)
    answers = [lua_script("sync_lottery")(redis_client, names, [n, "status", f"s{n}"]) for n in (2, 2, 1)]

    assert (b"NOT_WARMED", b"3") == (cold, told)
    assert [b"APPLIED", b"STALE", b"STALE"] == answers
    assert b"s2" == redis_client.hget(KEYS.meta, "status")
