"""Everything a Redis holds, to compare before and after."""

from __future__ import annotations

from typing import Any

import redis


def dump(client: redis.Redis, *, without: str = "") -> dict[bytes, tuple[Any, bool]]:
    """Key → its serialised value, and whether it expires; keys that contain ``without`` are left out."""
    kept = _read(client).items()
    return {key: (value, ttl_ms >= 0) for key, (value, ttl_ms) in kept if not without or without.encode() not in key}


def snapshot(client: redis.Redis) -> dict[bytes, tuple[Any, int]]:
    """Key → its serialised value and what is left of its life in ms, 0 for ever: what ``restore`` takes."""
    return {key: (value, max(0, ttl_ms)) for key, (value, ttl_ms) in _read(client).items()}


def _read(client: redis.Redis) -> dict[bytes, tuple[Any, int]]:
    """As of one moment; a key that passes between its name and its value is none."""
    keys: Any = client.keys("*")
    pipeline = client.pipeline(transaction=True)
    for key in keys:
        pipeline.dump(key).pttl(key)
    answers = pipeline.execute()
    read = zip(keys, answers[::2], answers[1::2], strict=True)
    return {key: (value, int(ttl_ms)) for key, value, ttl_ms in read if value is not None}


def restore(client: redis.Redis, kept: dict[bytes, tuple[Any, int]]) -> None:
    """Bring an earlier state back, as a server does that lost the end of its append-only file."""
    client.flushdb()
    for key, (value, ttl_ms) in kept.items():
        client.restore(key, ttl_ms, value)
