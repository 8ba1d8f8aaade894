"""The Redis key of a kept wallet."""

from __future__ import annotations

from zlib import crc32

SHARDS = 16
"""Wallets of one shard share a hash tag, so that a settled batch forgets them in a few commands on a cluster too."""


def wallet_shard(user_id: str) -> int:
    """The shard of a user's wallet."""
    return crc32(user_id.encode()) % SHARDS


def wallet_key(user_id: str) -> str:
    """String: the first page of a user's wallet as JSON, or the token of whoever is filling it."""
    return f"cw:{{w{wallet_shard(user_id)}}}:wallet:{user_id}"
