"""The ways to Redis. A client for scripts never retries by itself: it would take stock twice (DESIGN 6)."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.settings import Settings


def make_redis(settings: Settings, *, timeout_ms: int | None = None) -> redis.Redis:
    """A client of the stock's Redis that tries each command once. Make it after a fork, never before.

    Raises ``StoreUnavailable`` when no URL is set.
    """
    if settings.redis_url is None:
        raise StoreUnavailable("Redis", "COUPON_REDIS_URL is not set and no embedded server runs")
    return client_without_retries(settings.redis_url.get_secret_value(), timeout_ms or settings.redis_timeout_ms)


def client_without_retries(url: str, timeout_ms: int) -> redis.Redis:
    """A client of ``url`` that gives a command one try and ``timeout_ms`` milliseconds."""
    return redis.Redis.from_url(
        url,
        socket_timeout=timeout_ms / 1000,
        socket_connect_timeout=timeout_ms / 1000,
        retry=Retry(NoBackoff(), 0),
        retry_on_error=[],
        health_check_interval=0,
    )


def ask_raw(client: redis.Redis, *words: str | int) -> Any:
    """The bare answer to one command: the client's own reading of a stream costs several times the command.

    Raises ``StoreUnavailable`` when there is no answer.
    """
    try:
        connection = client.connection_pool.get_connection()
        try:
            connection.send_command(*words)  # type: ignore[no-untyped-call]  # likewise
            return connection.read_response()
        except BaseException:
            connection.disconnect()  # type: ignore[no-untyped-call]  # redis has no type for it
            raise
        finally:
            client.connection_pool.release(connection)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
