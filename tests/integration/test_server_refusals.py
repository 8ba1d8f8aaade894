"""A Redis that refuses to write for the moment is unavailable, by whatever word it says so (FAULTS 6, 19)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress

import pytest
import redis

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lua_script import LuaScript

KEY = "cw:refused"


@contextmanager
def _configured(client: redis.Redis, name: str, value: int | str, usual: int | str) -> Iterator[None]:
    client.config_set(name, value)
    try:
        yield
    finally:
        client.config_set(name, usual)


def _out_of_memory(client: redis.Redis) -> AbstractContextManager[None]:
    return _configured(client, "maxmemory", 1, 0)


def _without_replicas(client: redis.Redis) -> AbstractContextManager[None]:
    return _configured(client, "min-replicas-to-write", 1, 0)


@contextmanager
def _a_replica(client: redis.Redis) -> Iterator[None]:
    client.replicaof("127.0.0.1", "1")  # where nobody listens: it keeps what it has
    try:
        yield
    finally:
        client.replicaof("NO", "ONE")


@contextmanager
def _a_stale_replica(client: redis.Redis) -> Iterator[None]:
    with _a_replica(client), _configured(client, "replica-serve-stale-data", "no", "yes"):
        yield


@contextmanager
def _busy(client: redis.Redis) -> Iterator[None]:
    """With somebody's script that does not end: the server hears nobody but who kills it."""

    def run() -> None:
        with suppress(redis.RedisError):
            client.eval("while true do end", 0)

    with _configured(client, "busy-reply-threshold", 10, 5_000), ThreadPoolExecutor(1) as other:
        other.submit(run)
        while not _is_busy(client):
            pass
        try:
            yield
        finally:
            client.script_kill()


def _is_busy(client: redis.Redis) -> bool:
    try:
        return not client.ping()
    except redis.ResponseError:
        return True


REFUSALS: dict[str, Callable[[redis.Redis], AbstractContextManager[None]]] = {
    "OOM": _out_of_memory,
    "NOREPLICAS": _without_replicas,
    "READONLY": _a_replica,
    "MASTERDOWN": _a_stale_replica,
    "BUSY": _busy,
}


@pytest.mark.parametrize("word", REFUSALS)
def test_a_script_that_may_not_write_finds_the_store_unavailable(redis_client: redis.Redis, word: str) -> None:
    """Known to the server or not: it is a 503 to whoever asked, and nothing was written."""
    script = LuaScript("claim")
    script.source = "redis.call('SET', KEYS[1], ARGV[1]) return 1"
    script.sha = redis_client.script_load(script.source)

    with REFUSALS[word](redis_client), pytest.raises(StoreUnavailable):
        script(redis_client, [KEY], ["1"])

    assert redis_client.get(KEY) is None
    assert 1 == script(redis_client, [KEY], ["1"])


def test_an_error_of_the_script_itself_is_one(redis_client: redis.Redis) -> None:
    """Asking again would not help."""
    script = LuaScript("claim")
    script.source = "return redis.call('INCR', KEYS[1])"
    script.sha = redis_client.script_load(script.source)
    redis_client.set(KEY, "no number")

    with pytest.raises(redis.ResponseError):
        script(redis_client, [KEY])
