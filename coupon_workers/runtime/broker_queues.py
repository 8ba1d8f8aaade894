"""How many messages wait in the broker's queues, and how many were given up (API.md, Operations).

Reads the keys of Dramatiq's Redis broker (its ``dispatch.lua``): list ``dramatiq:<queue>`` of message ids, hash
``….msgs`` of their contents, set ``….XQ`` of the dead ones. No KEYS, no SCAN. With RabbitMQ a passive declaration
tells the number of messages, and nothing of their age.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pika
import redis
from pika.exceptions import AMQPError, ChannelClosedByBroker
from redis.exceptions import RedisError

from coupon_workers.errors import Conflict, StoreUnavailable
from coupon_workers.runtime.queue_depth import server_now_ms
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.task import Queue

NAMESPACE = "dramatiq"
"""The prefix of every key of Dramatiq's Redis broker; ours runs with its default."""

TIMEOUT_MS = 900
"""Shorter than the second that a probe of health may take."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """``depth`` messages wait, the oldest for ``age_ms`` (None: nothing waits, or RabbitMQ does not tell);
    ``delayed`` wait for their time, ``in_work`` have been fetched, ``dead_letters`` were given up."""

    name: str
    depth: int
    age_ms: int | None
    delayed: int
    in_work: int | None
    dead_letters: int


class BrokerQueues:
    """The queues of ``settings.broker_url``, to look at. Make it after a fork.

    Raises ``StoreUnavailable`` when no URL is set.
    """

    def __init__(self, settings: Settings) -> None:
        if settings.broker_url is None:
            raise StoreUnavailable("broker", "COUPON_BROKER_URL is not set and no embedded server runs")
        self._url = settings.broker_url.get_secret_value()
        is_rabbit = self._url.startswith("amqp")
        self._client = None if is_rabbit else client_without_retries(self._url, TIMEOUT_MS)

    def depths(self) -> list[QueueDepth]:
        """Every queue, in the order of ``Queue``. Raises ``StoreUnavailable``."""
        if self._client is None:
            return _rabbit_depths(self._url)
        try:
            return _redis_depths(self._client)
        except RedisError as error:
            raise StoreUnavailable("broker", str(error)) from error

    @property
    def redis(self) -> redis.Redis:
        """The broker's Redis. Raises ``Conflict`` ``NOT_A_REDIS_BROKER`` when it is RabbitMQ."""
        if self._client is None:
            raise Conflict("NOT_A_REDIS_BROKER", "RabbitMQ keeps its dead letters; use its own tools")
        return self._client


def _redis_depths(client: redis.Redis) -> list[QueueDepth]:
    pipeline = client.pipeline(transaction=False)
    for queue in Queue:
        key = f"{NAMESPACE}:{queue.value}"
        pipeline.llen(key)
        pipeline.hlen(f"{key}.msgs")
        pipeline.lindex(key, 0)
        pipeline.hlen(f"{key}.DQ.msgs")
        pipeline.zcard(f"{key}.XQ")
    replies = pipeline.execute()
    now_ms = server_now_ms(client)
    depths = []
    for position, queue in enumerate(Queue):
        depth, kept, first, delayed, dead = replies[5 * position : 5 * position + 5]
        age_ms = _age_ms(client, queue, first, now_ms)
        depths.append(QueueDepth(queue.value, depth, age_ms, delayed, max(0, kept - depth), dead))
    return depths


def _age_ms(client: redis.Redis, queue: Queue, first: bytes | None, now_ms: int) -> int | None:
    data = client.hget(f"{NAMESPACE}:{queue.value}.msgs", first) if first is not None else None
    try:
        return max(0, now_ms - int(json.loads(data)["message_timestamp"])) if data else None
    except (ValueError, TypeError, KeyError):
        return None  # foreign bytes: the worker that fetches them sets them aside


def _rabbit_depths(url: str) -> list[QueueDepth]:
    parameters = pika.URLParameters(url)
    parameters.socket_timeout = parameters.stack_timeout = parameters.blocked_connection_timeout = TIMEOUT_MS / 1000
    parameters.connection_attempts = 1
    try:
        with pika.BlockingConnection(parameters) as connection:
            return [
                QueueDepth(
                    name=queue.value,
                    depth=_messages(connection, queue.value),
                    age_ms=None,
                    delayed=_messages(connection, f"{queue.value}.DQ"),
                    in_work=None,
                    dead_letters=_messages(connection, f"{queue.value}.XQ"),
                )
                for queue in Queue
            ]
    except (AMQPError, OSError) as error:
        raise StoreUnavailable("broker", str(error) or type(error).__name__) from error


def _messages(connection: Any, queue: str) -> int:
    channel = connection.channel()
    try:
        return int(channel.queue_declare(queue, passive=True).method.message_count)
    except ChannelClosedByBroker:
        return 0  # nobody has sent to it yet
    finally:
        if channel.is_open:
            channel.close()
