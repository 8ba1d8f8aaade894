"""What must be true of the broker and of everything written or answered: G and I of FAULTS.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import redis

from tests.support.history import Operation

QUEUES = ("settle", "settle.DQ", "care", "care.DQ")

_TRACE = re.compile(r"Traceback \(most recent call last\)|\bFile \\?\"[^\"]+\.py\\?\", line \d+")
_CREDENTIALS = re.compile(r"\b[a-z0-9+]{2,24}://[^\s/@\"]{0,99}:[^\s/@\"]{1,99}@")
"""An address with a password in it. Bounded, so that megabytes of anything are read in no time."""

_ADDRESS = re.compile(r"(postgres(ql)?(\+\w+)?|rediss?|unix|amqps?)://")


def lost_messages(broker: redis.Redis) -> Iterator[str]:
    """G: every message that is kept is in a queue, in somebody's hands or dead, and everything queued has its content.

    In a broker at rest nothing is in anybody's hands: what still is, nobody will deliver.
    """
    in_hands = set[bytes]()
    for key in _keys(broker, "dramatiq:__acks__.*"):
        in_hands |= _members(broker, key)
    for queue in QUEUES:
        waiting: Any = broker.lrange(f"dramatiq:{queue}", 0, -1)
        contents: Any = broker.hgetall(f"dramatiq:{queue}.msgs")
        for message_id in set(waiting) - contents.keys():
            yield f"{queue}: {message_id!r} is queued without a content"
        for message_id in contents.keys() - set(waiting):
            where = "held and not worked on" if message_id in in_hands else "in nobody's hands"
            yield f"{queue}: {_name_of(contents[message_id])} is {where}"


def leaks(operations: Sequence[Operation], logs: Iterable[str], secrets: Sequence[str]) -> Iterator[str]:
    """I: no secret and no stack trace in an answer or a log; no address of a store in an answer."""
    for operation in operations:
        answer = json.dumps(operation.answer)
        found = _TRACE.search(answer) or _CREDENTIALS.search(answer) or _ADDRESS.search(answer)
        if found or any(secret in answer for secret in secrets):
            yield f"{operation.name} was answered {answer[:200]}"
    for log in logs:
        for line in log.splitlines():
            found = _TRACE.search(line) or _CREDENTIALS.search(line)
            if found or any(secret in line for secret in secrets):
                yield f"logged: {line[:2000]}"


def _keys(broker: redis.Redis, pattern: str) -> list[bytes]:
    found: Any = broker.keys(pattern)
    return list(found)


def _members(broker: redis.Redis, key: bytes) -> set[bytes]:
    found: Any = broker.smembers(key)
    return set(found)


def _name_of(content: bytes) -> str:
    try:
        message = json.loads(content)
        return f"{message['actor_name']}{message['args']}"[:80]
    except (ValueError, KeyError, TypeError):
        return repr(content[:80])
