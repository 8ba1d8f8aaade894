"""The Redis key of a kept wallet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from zlib import crc32

SHARDS = 16
"""Wallets of one shard share a hash tag, so that a settled batch forgets them in a few commands on a cluster too."""


def wallet_shard(user_id: str) -> int:
    """The shard of a user's wallet."""
    return crc32(user_id.encode()) % SHARDS


def wallet_key(user_id: str) -> str:
    """String: the first page of a user's wallet as JSON, or the token of whoever is filling it."""
    return _key(wallet_shard(user_id), user_id)


def wallet_keys(user_ids: Collection[str]) -> Iterable[list[str]]:
    """The keys of these users' wallets, those of a shard together."""
    shards: defaultdict[int, list[str]] = defaultdict(list)
    for user_id in user_ids:
        shard = wallet_shard(user_id)
        shards[shard].append(_key(shard, user_id))
    return shards.values()


def shard_tag(shard: int) -> str:
    """The hash tag of a shard's keys."""
    return f"w{shard}"


def _key(shard: int, user_id: str) -> str:
    return f"cw:{{{shard_tag(shard)}}}:wallet:{user_id}"
