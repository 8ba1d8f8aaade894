"""Hands in the broker's queues: messages put there, tripled, and found again, as Dramatiq's Redis broker keeps them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import redis


def encode(actor: str, args: Sequence[Any], queue: str, **options: Any) -> bytes:
    """A message as Dramatiq writes it. ``options`` over its own; None leaves one out."""
    kept = {"redis_message_id": str(uuid4())} | options
    message = {
        "queue_name": queue,
        "actor_name": actor,
        "args": list(args),
        "kwargs": {},
        "options": {name: value for name, value in kept.items() if value is not None},
        "message_id": str(uuid4()),
        "message_timestamp": int(time.time() * 1000),
    }
    return json.dumps(message, separators=(",", ":")).encode()


def put(broker: redis.Redis, queue: str, content: bytes) -> str:
    """Enqueue bytes, whatever they are; the id under which they lie there."""
    try:
        message_id = str(json.loads(content)["options"]["redis_message_id"])
    except (ValueError, TypeError, KeyError):
        message_id = str(uuid4())
    with broker.pipeline(transaction=True) as pipeline:
        pipeline.hset(f"dramatiq:{queue}.msgs", message_id, content)
        pipeline.rpush(f"dramatiq:{queue}", message_id)
        pipeline.execute()
    return message_id


def triple(broker: redis.Redis, queue: str, draw: random.Random) -> int:
    """Have every message that waits delivered three times, in any order; how many were tripled. Nobody may fetch."""
    waiting: Any = broker.lrange(f"dramatiq:{queue}", 0, -1)
    for message_id in waiting:
        content: Any = broker.hget(f"dramatiq:{queue}.msgs", message_id)
        for _ in range(2):
            copy = json.loads(content)
            copy["options"]["redis_message_id"] = str(uuid4())
            put(broker, queue, json.dumps(copy).encode())
    everything: Any = broker.lrange(f"dramatiq:{queue}", 0, -1)
    draw.shuffle(everything)
    broker.delete(f"dramatiq:{queue}")
    if everything:
        broker.rpush(f"dramatiq:{queue}", *everything)
    return len(waiting)


def dead(broker: redis.Redis, queue: str) -> dict[str, str]:
    """The dead letters of a queue: the id under which each lies there → the message's own id, or "" without one.

    A retried message lies under another id each time; its own stays.
    """
    contents: Any = broker.hgetall(f"dramatiq:{queue}.XQ.msgs")
    return {message_id.decode(): own_id(content) for message_id, content in contents.items()}


def own_id(content: bytes) -> str:
    """The ``message_id`` of a message that can be read, else an empty text."""
    try:
        message = json.loads(content)
    except ValueError:
        return ""
    return str(message.get("message_id", "")) if isinstance(message, dict) else ""


def call_dead(broker: redis.Redis) -> None:
    """Make every worker look silent for as long as a dead one; who lives says so within a tenth of a second."""
    workers: Any = broker.zrange("dramatiq:__heartbeats__", 0, -1)
    if workers:
        broker.zadd("dramatiq:__heartbeats__", dict.fromkeys(workers, 0))
