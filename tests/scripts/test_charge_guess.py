"""``charge_guess`` and ``refund_guess``: an allowance that is used up, fills again, and never lasts for ever."""

from __future__ import annotations

import pytest
import redis

from coupon_workers.runtime.lua_script import lua_script
from tests.support.redis_dump import dump

USER, IP = "cw:{guess}:user:u-1", "cw:{guess}:ip:203.0.113.7"
WINDOW_MS = 600_000
NOW_MS = 1_800_000_000_000


def _charge(client: redis.Redis, now_ms: int = NOW_MS, **most: int) -> tuple[str, int]:
    keys = {"user": USER, "ip": IP}
    reply = lua_script("charge_guess")(client, [keys[name] for name in most], [now_ms, WINDOW_MS, *most.values()])
    return reply[0].decode(), int(reply[1]) if len(reply) > 1 else 0


def _refund(client: redis.Redis, now_ms: int = NOW_MS, **most: int) -> str:
    keys = {"user": USER, "ip": IP}
    reply: bytes = lua_script("refund_guess")(
        client, [keys[name] for name in most], [now_ms, WINDOW_MS, *most.values()]
    )
    return reply.decode()


def test_so_many_tries_are_heard_and_the_next_one_waits(redis_client: redis.Redis) -> None:
    """For the tenth part of the window, where ten are allowed."""
    heard = [_charge(redis_client, user=10) for _ in range(11)]

    assert [("CHARGED", 0)] * 10 + [("LIMITED", WINDOW_MS // 10)] == heard


def test_an_allowance_fills_up_steadily(redis_client: redis.Redis) -> None:
    """One try after a tenth of the window, all of them after the whole."""
    for _ in range(10):
        _charge(redis_client, user=10)

    later = NOW_MS + WINDOW_MS // 10
    assert ["CHARGED", "LIMITED"] == [_charge(redis_client, later, user=10)[0] for _ in range(2)]
    whole = later + WINDOW_MS
    assert ["CHARGED"] * 10 + ["LIMITED"] == [_charge(redis_client, whole, user=10)[0] for _ in range(11)]


def test_a_refused_try_does_not_prolong_the_wait(redis_client: redis.Redis) -> None:
    """It writes nothing (CASES 10)."""
    for _ in range(10):
        _charge(redis_client, user=10)
    before = dump(redis_client)

    waits = {_charge(redis_client, user=10, ip=100) for _ in range(50)}

    assert {("LIMITED", WINDOW_MS // 10)} == waits
    assert before == dump(redis_client)


def test_whoever_has_used_up_one_allowance_is_charged_for_none(redis_client: redis.Redis) -> None:
    """An address that is used up stops a new user, whose own allowance stays whole."""
    for _ in range(3):
        _charge(redis_client, ip=3)

    assert "LIMITED" == _charge(redis_client, user=10, ip=3)[0]
    assert 0 == redis_client.exists(USER)


def test_a_right_code_costs_nothing(redis_client: redis.Redis) -> None:
    """What is charged and given back leaves what was."""
    for _ in range(3):
        _charge(redis_client, user=10, ip=100)
    before = {key: value for key, (value, _) in dump(redis_client).items()}

    for _ in range(200):
        assert "CHARGED" == _charge(redis_client, user=10, ip=100)[0]
        assert "REFUNDED" == _refund(redis_client, user=10, ip=100)

    assert before == {key: value for key, (value, _) in dump(redis_client).items()}


@pytest.mark.parametrize("charged", [0, 1])
def test_nothing_is_given_back_that_was_not_taken(redis_client: redis.Redis, charged: int) -> None:
    """Of a Redis that was emptied meanwhile, or after the last try."""
    for _ in range(charged):
        _charge(redis_client, user=10)

    _refund(redis_client, user=10)

    assert 0 == redis_client.exists(USER)
    assert ["CHARGED"] * 10 + ["LIMITED"] == [_charge(redis_client, user=10)[0] for _ in range(11)]


def test_no_allowance_is_kept_for_longer_than_its_window(redis_client: redis.Redis) -> None:
    """A key goes when it has nothing to say any more; by this server's clock."""
    for _ in range(10):
        _charge(redis_client, 0, user=10)

    assert 0 < redis_client.pttl(USER) <= WINDOW_MS
