"""Everything a Redis holds, to compare before and after."""

from __future__ import annotations

from typing import Any

import redis


def dump(client: redis.Redis, *, without: str = "") -> dict[bytes, tuple[Any, bool]]:
    """Key → its serialised value, and whether it expires; keys that contain ``without`` are left out."""
    keys: Any = client.keys("*")
    return {
        key: (client.dump(key), int(client.pttl(key)) >= 0)
        for key in keys
        if not without or without.encode() not in key
    }


def snapshot(client: redis.Redis) -> dict[bytes, tuple[Any, int]]:
    """Key → its serialised value and what is left of its life in ms, 0 for ever: what ``restore`` takes."""
    keys: Any = client.keys("*")
    return {key: (client.dump(key), max(0, int(client.pttl(key)))) for key in keys}


def restore(client: redis.Redis, kept: dict[bytes, tuple[Any, int]]) -> None:
    """Bring an earlier state back, as a server does that lost the end of its append-only file."""
    client.flushdb()
    for key, (value, ttl_ms) in kept.items():
        client.restore(key, ttl_ms, value)
