"""Dead letters: messages that were given up. Listed, sent again or thrown away; for the Redis broker.

Dramatiq moves a message that failed for good to ``<queue>.XQ`` and forgets it after a week. RabbitMQ has tools of its
own for this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import redis
from redis.exceptions import RedisError

from coupon_workers.errors import Conflict, NotFound, StoreUnavailable
from coupon_workers.runtime.broker_queues import NAMESPACE
from coupon_workers.runtime.clock import from_ms, to_ms, utc_now
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.task import Queue

NOT_FOUND = "DEAD_LETTER_NOT_FOUND"

_RETRY_OPTIONS = ("retries", "traceback", "requeue_timestamp", "eta")
"""What earlier tries left in a message: with its count of retries it would die again at its first failure."""

_ERROR = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)")

_CHUNK = 200

Position = tuple[str, int, str]
"""Where a page ended: queue, instant in ms, id."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One message. ``actor`` and ``args`` are None when it cannot be read; ``error`` is the class of the last failure
    when it is known. What the failure said is in the worker's log: it may hold what is not for everybody's eyes.
    """

    id: str
    queue: str
    actor: str | None
    args: list[Any] | None
    error: str | None
    died_at: datetime


@dataclass(frozen=True, slots=True)
class _Keys:
    queue: str

    @property
    def all(self) -> list[str]:
        """The keys of ``take_dead_letter``, in its order."""
        key = f"{NAMESPACE}:{self.queue}"
        return [f"{key}.XQ", f"{key}.XQ.msgs", key, f"{key}.msgs"]


def list_dead_letters(client: redis.Redis, *, limit: int, after: Position | None = None) -> list[DeadLetter]:
    """Up to ``limit`` dead letters, queue by queue, the latest dead first, from after the position of ``after``.

    Raises ``StoreUnavailable``.
    """
    found: list[DeadLetter] = []
    try:
        for queue in _queues_from(after):
            found += _of_queue(client, queue, limit - len(found), after if after and after[0] == queue else None)
            if len(found) >= limit:
                break
    except RedisError as error:
        raise StoreUnavailable("broker", str(error)) from error
    return found


def replay_dead_letter(client: redis.Redis, message_id: str) -> None:
    """Send a dead letter to its queue again, as new. Whoever calls second finds nothing left to send.

    Raises ``NotFound``, ``Conflict`` ``UNREADABLE`` for a message no worker could read, ``StoreUnavailable``.
    """
    queue, content = _find(client, message_id)
    message = _parse(content)
    if message is None:
        raise Conflict("UNREADABLE", "no worker can read this message; it can only be discarded")
    for option in _RETRY_OPTIONS:
        message["options"].pop(option, None)
    message["message_timestamp"] = to_ms(utc_now())  # a worker drops what is too old, and tells how long it waited
    _take(client, queue, message_id, content, json.dumps(message, separators=(",", ":")).encode())


def discard_dead_letter(client: redis.Redis, message_id: str) -> None:
    """Throw a dead letter away. Raises ``NotFound``, ``StoreUnavailable``."""
    queue, content = _find(client, message_id)
    _take(client, queue, message_id, content, b"")


def _take(client: redis.Redis, queue: str, message_id: str, expected: bytes, content: bytes) -> None:
    if lua_script("take_dead_letter")(client, _Keys(queue).all, [message_id, expected, content]) != b"TAKEN":
        raise NotFound(NOT_FOUND, "there is no such dead letter any more")


def _find(client: redis.Redis, message_id: str) -> tuple[str, bytes]:
    try:
        for queue in Queue:
            content: Any = client.hget(_Keys(queue.value).all[1], message_id)
            if content is not None:
                return queue.value, content
    except RedisError as error:
        raise StoreUnavailable("broker", str(error)) from error
    raise NotFound(NOT_FOUND, "there is no such dead letter")


def _queues_from(after: Position | None) -> list[str]:
    names = [queue.value for queue in Queue]
    return names[names.index(after[0]) :] if after and after[0] in names else names


def _of_queue(client: redis.Redis, queue: str, limit: int, after: Position | None) -> list[DeadLetter]:
    ids = []
    for message_id, died_ms in _ids(client, queue, after[1] if after else None):
        if after and (died_ms, message_id) >= (after[1], after[2].encode()):
            continue
        ids.append((message_id, died_ms))
        if len(ids) == limit:
            break
    if not ids:
        return []
    contents: Any = client.hmget(_Keys(queue).all[1], [message_id for message_id, _ in ids])
    return [_letter(queue, *identity, content) for identity, content in zip(ids, contents, strict=True)]


def _ids(client: redis.Redis, queue: str, from_ms_: int | None) -> Iterator[tuple[bytes, int]]:
    """Ids and instants, the latest first; equal instants by id, falling, as Redis orders them."""
    start = 0
    highest = "+inf" if from_ms_ is None else from_ms_
    while True:
        chunk: Any = client.zrevrangebyscore(_Keys(queue).all[0], highest, "-inf", start, _CHUNK, withscores=True)
        for message_id, score in chunk:
            yield message_id, int(score)
        if len(chunk) < _CHUNK:
            return
        start += _CHUNK


def _letter(queue: str, message_id: bytes, died_ms: int, content: bytes | None) -> DeadLetter:
    message = _parse(content or b"")
    return DeadLetter(
        id=message_id.decode(errors="replace"),
        queue=queue,
        actor=message["actor_name"] if message else None,
        args=message["args"] if message else None,
        error=_error_class(message["options"].get("traceback")) if message else None,
        died_at=from_ms(died_ms),
    )


def _parse(content: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(content)
        readable = isinstance(message["actor_name"], str) and isinstance(message["args"], list)
        return message if readable and isinstance(message["options"], dict) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _error_class(traceback: object) -> str | None:
    """The class named on the last line that names one."""
    for line in reversed(str(traceback or "").splitlines()):
        match = _ERROR.match(line)
        if match:
            return match[1].rpartition(".")[2]
    return None
