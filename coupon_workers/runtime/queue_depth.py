"""How much waits where: messages in the broker, accepted claims in the pending streams (API.md, Operations).

Reads the keys of Dramatiq's Redis broker (its ``dispatch.lua``): list ``dramatiq:<queue>`` of message ids, hash
``….msgs``, and sorted set ``….XQ`` of the dead ones. No KEYS, no SCAN. With RabbitMQ a passive declaration tells the
number of messages, and nothing of their age.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pika
import redis
from pika.exceptions import AMQPError, ChannelClosedByBroker
from redis.exceptions import RedisError

from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.task import Queue

NAMESPACE = "dramatiq"
"""The prefix of every key of Dramatiq's Redis broker; ours runs with its default."""

TIMEOUT_MS = 900
"""Shorter than the second that a probe of health may take."""

CHUNK = 1_000
"""Streams looked at in one round trip."""


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


@dataclass(frozen=True, slots=True)
class PendingDepth:
    """``depth`` accepted claims of a template's bucket are not settled yet, the oldest for ``oldest_age_ms``."""

    template_id: int
    bucket: int
    depth: int
    oldest_age_ms: int


def broker_client(settings: Settings) -> redis.Redis | None:
    """A client of the broker's Redis; None when the broker is RabbitMQ. Make it after a fork.

    Raises ``StoreUnavailable`` when no URL is set.
    """
    if settings.broker_url is None:
        raise StoreUnavailable("broker", "COUPON_BROKER_URL is not set and no embedded server runs")
    url = settings.broker_url.get_secret_value()
    return None if url.startswith("amqp") else client_without_retries(url, TIMEOUT_MS)


def queue_depths(settings: Settings, client: redis.Redis | None) -> list[QueueDepth]:
    """Every queue, in the order of ``Queue``. Raises ``StoreUnavailable``."""
    if client is None:
        return _rabbit_depths(settings)
    try:
        return _redis_depths(client)
    except RedisError as error:
        raise StoreUnavailable("broker", str(error)) from error


def pending_depths(client: redis.Redis) -> list[PendingDepth]:
    """Each bucket with claims that are not settled, the longest waiting first. ``client`` is the stock's.

    Raises ``StoreUnavailable``.
    """
    try:
        warm = sorted(client.smembers(WARM_TEMPLATES))
        now_ms = _now_ms(client)
        found = []
        for start in range(0, len(warm), CHUNK):
            found += _pending_chunk(client, warm[start : start + CHUNK], now_ms)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    return sorted(found, key=lambda pending: -pending.oldest_age_ms)


def _pending_chunk(client: redis.Redis, members: Sequence[bytes], now_ms: int) -> list[PendingDepth]:
    buckets = [BucketKeys(*map(int, member.split(b"."))) for member in members]
    pipeline = client.pipeline(transaction=False)
    for keys in buckets:
        pipeline.xlen(keys.pending)
        pipeline.xrange(keys.pending, count=1)
    replies = pipeline.execute()
    return [
        PendingDepth(keys.template_id, keys.bucket, depth, max(0, now_ms - int(oldest[0][0].split(b"-")[0])))
        for keys, depth, oldest in zip(buckets, replies[0::2], replies[1::2], strict=True)
        if oldest
    ]


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
    now_ms = _now_ms(client)
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


def _now_ms(client: redis.Redis) -> int:
    seconds, microseconds = client.time()
    return int(seconds) * 1000 + int(microseconds) // 1000


def _rabbit_depths(settings: Settings) -> list[QueueDepth]:
    assert settings.broker_url is not None
    parameters = pika.URLParameters(settings.broker_url.get_secret_value())
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
