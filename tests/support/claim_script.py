"""The claim script alone: keys written by hand, one call with every argument in sight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.lua_script import lua_script

KEYS = BucketKeys(7_101)
NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
RATE = ":rate:"
"""In the name of every key that an attempt may write though it is refused."""


@dataclass(frozen=True)
class ClaimScript:
    """``lua/claim.lua`` on the keys of one bucket."""

    client: redis.Redis
    keys: BucketKeys = KEYS

    def warm(self, *, stock: int = 10, **meta: str | int) -> None:
        """Write the keys of an open template without limits, except what ``meta`` says."""
        fields: dict[Any, Any] = {
            "version": 1,
            "total": stock,
            "status": "open",
            "start_ms": NOW_MS - DAY_MS,
            "end_ms": NOW_MS + DAY_MS,
            "user_limit": "",
            "daily_limit": "",
            "offsets": f"{NOW_MS // 1000 - 10 * 86_400}:28800",
            "channels": "",
            "epoch": 0,
        }
        self.client.hset(self.keys.meta, mapping=fields | meta)
        self.client.set(self.keys.stock, stock)
        self.client.set(self.keys.generation, "g1")

    def all_keys(self) -> list[str]:
        """KEYS in the order of the script's header."""
        keys = self.keys
        return [
            keys.meta,
            keys.generation,
            keys.stock,
            keys.takers,
            keys.requests,
            keys.claims,
            keys.pending,
            keys.bell,
            keys.day_prefix,
            keys.rate_prefix,
            keys.pool,
            keys.risk_list,
            keys.risk_prefix,
            keys.risk_log,
        ]

    def claim(self, user: str = "ann", request: str = "r1", claim_id: int = 1, **changed: Any) -> list[Any]:
        """Ask once; texts of the answer as ``str``."""
        return as_text(lua_script("claim")(self.client, self.all_keys(), arguments(user, request, claim_id, **changed)))

    def claim_at_once(self, calls: Sequence[list[Any]]) -> list[list[Any]]:
        """Ask several times in one transaction: no time passes between the calls, and no key expires."""
        script = lua_script("claim")
        self.client.script_load(script.source)
        with self.client.pipeline(transaction=True) as pipeline:
            for args in calls:
                pipeline.evalsha(script.sha, 14, *self.all_keys(), *args)
            return [as_text(answer) for answer in pipeline.execute()]

    def entries(self) -> list[dict[str, str]]:
        """The fields of each pending claim."""
        stream: Any = self.client.xrange(self.keys.pending)
        return [{name.decode(): value.decode() for name, value in fields.items()} for _, fields in stream]

    def entry_ids(self) -> list[str]:
        """The ids of the pending claims."""
        stream: Any = self.client.xrange(self.keys.pending)
        return [entry_id.decode() for entry_id, _ in stream]


def arguments(user: str, request: str, claim_id: int, **changed: Any) -> list[Any]:
    """ARGV in the order of the script's header."""
    values = {"now_ms": NOW_MS, "channel": "", "backlog_limit": 100, "rate": 0, "bell_ttl_ms": 3_000}
    values |= {"device_id": "", "ip": "", "address_hash": ""} | changed
    return [claim_id, user, request, *values.values()]


def as_text(answer: list[Any]) -> list[Any]:
    """The answer with bytes read as text."""
    return [part.decode() if isinstance(part, bytes) else part for part in answer]
