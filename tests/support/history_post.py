"""What must be true of the broker and of everything written or answered: G and I of FAULTS.md."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import redis

from tests.support.history import Operation

QUEUES = ("settle", "settle.DQ", "care", "care.DQ")

_TRACE = re.compile(r"Traceback \(most recent call last\)|\bFile \\?\"[^\"]+\.py\\?\", line \d+")
_CREDENTIALS = re.compile(r"\b[a-z0-9+]{2,24}://[^\s/@\"]{0,99}:[^\s/@\"]{1,99}@")
"""An address with a password in it. Bounded, so that megabytes of anything are read in no time."""

_ADDRESS = re.compile(r"(postgres(ql)?(\+\w+)?|rediss?|unix|amqps?)://")


PATIENCE_S = 2.0
"""A message that the scheduler has just sent is gone by then."""


def lost_messages(broker: redis.Redis) -> Iterator[str]:
    """G: every message that is kept is in a queue, in somebody's hands or dead, and everything queued has its content.

    In a broker at rest nothing stays in anybody's hands: what does, nobody will deliver.
    """
    lost = _astray(broker)
    ends_s = time.monotonic() + PATIENCE_S
    while lost and time.monotonic() < ends_s:
        time.sleep(0.05)
        still = _astray(broker)
        lost = {message_id: still[message_id] for message_id in lost.keys() & still.keys()}
    yield from lost.values()


def _astray(broker: redis.Redis) -> dict[bytes, str]:
    """Messages that do not wait to be delivered, or have nothing to deliver; what is the matter with each."""
    found: dict[bytes, str] = {}
    in_hands = set[bytes]()
    for key in _keys(broker, "dramatiq:__acks__.*"):
        in_hands |= _members(broker, key)
    for queue in QUEUES:
        waiting: Any = broker.lrange(f"dramatiq:{queue}", 0, -1)
        contents: Any = broker.hgetall(f"dramatiq:{queue}.msgs")
        for message_id in set(waiting) - contents.keys():
            found[message_id] = f"{queue}: {message_id!r} is queued without a content"
        for message_id in contents.keys() - set(waiting):
            where = "held and not worked on" if message_id in in_hands else "in nobody's hands"
            found[message_id] = f"{queue}: {_name_of(contents[message_id])} is {where}"
    return found


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
