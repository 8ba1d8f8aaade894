"""Every Redis key of claiming, spelt here and nowhere else.

All keys of a template's bucket share the hash tag ``{t<id>.<bucket>}``, so that one script may touch them all on a
Redis Cluster too. The day and rate keys are made inside the script from their prefix: the day is known only there,
by Redis's clock, and the shared tag keeps them on the same node.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

WARM_TEMPLATES = "cw:warm-templates"
"""Set of ``<template_id>.<bucket>`` that have been preheated: where to ask for a claim that is still queued."""

HELD = "held:"
"""Prefix of fields of ``meta``: ``held:<amount>``, how many of the amount the pool's list still holds although a
queued claim has them."""


@dataclass(frozen=True, slots=True)
class BucketKeys:
    """The keys of one bucket of one template."""

    template_id: int
    bucket: int = 0

    def _key(self, name: str) -> str:
        return f"cw:{{t{self.template_id}.{self.bucket}}}:{name}"

    @property
    def meta(self) -> str:
        """Hash: version, status, window, limits, total, as the last change brought them."""
        return self._key("meta")

    @property
    def generation(self) -> str:
        """String: set last by the preheat; absent when the data is not whole."""
        return self._key("generation")

    @property
    def stock(self) -> str:
        """Integer: units that may still be taken. Below zero when more was issued than Redis knew of."""
        return self._key("stock")

    @property
    def takers(self) -> str:
        """Hash user → ``<count> <last seq>``."""
        return self._key("takers")

    @property
    def requests(self) -> str:
        """Hash ``<user> <request id>`` → ``<claim id> <state>``; state: queued, issued, or a rejection's reason."""
        return self._key("requests")

    @property
    def claims(self) -> str:
        """Hash claim id → instant of acceptance in ms, for as long as the claim is queued."""
        return self._key("claims")

    @property
    def pending(self) -> str:
        """Stream of accepted claims that are not settled: fields c, u, r, s, t, d, e, h, v of a pool, and
        k, i, p, a where rules of a risk policy fired (``lua/claim.lua``)."""
        return self._key("pending")

    @property
    def bell(self) -> str:
        """String with a short life: a doorbell has been rung and a drain is due or at work."""
        return self._key("bell")

    @property
    def pool(self) -> str:
        """List of the face values nobody has drawn, shuffled, of a template of random amounts."""
        return self._key("pool")

    @property
    def risk_list(self) -> str:
        """Hash of who is listed or scored, for a template with a risk policy (``lua/part/weigh_risk.lua``)."""
        return self._key("risk:list")

    @property
    def risk_prefix(self) -> str:
        """Prefix of the counters of a risk policy's rules, each with a life of its own."""
        return self._key("risk:count:")

    @property
    def risk_dropped(self) -> str:
        """Integer: refusals that the risk log had no room for."""
        return f"{self.risk_prefix}dropped"

    @property
    def risk_log(self) -> str:
        """Stream of claims that a risk policy refused, of bounded length, on its way to PostgreSQL."""
        return self._key("risk:log")

    @property
    def told(self) -> str:
        """String: the newest version a cold gate was told of; a build from an older one must not open it."""
        return self._key("told")

    @property
    def mending(self) -> str:
        """String with a short life: a rebuild was asked for because the gate accepted what it should have refused."""
        return self._key("mending")

    @property
    def day_prefix(self) -> str:
        """Prefix of the hashes user → count of one local day: ``…:day:<days since 1970-01-01>``."""
        return self._key("day:")

    @property
    def rate_prefix(self) -> str:
        """Prefix of the strings that hold the instant, in microseconds, up to which a user's rate is used up."""
        return self._key("rate:")

    def shadow(self, name: str) -> str:
        """The key under which a preheat builds ``name`` before it takes the live key's place."""
        return self._key(f"shadow:{name}")


def bucket_of(user_id: str, bucket_count: int) -> int:
    """The bucket of a user: stable across processes and releases (CRC-32 of the UTF-8 text)."""
    return crc32(user_id.encode()) % bucket_count if bucket_count > 1 else 0
