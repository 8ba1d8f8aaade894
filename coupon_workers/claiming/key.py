"""Every Redis key of claiming.

All keys of a template's bucket share the hash tag ``{t<id>.<bucket>}``, so that one script may touch them all on a
Redis Cluster too. The day and rate keys are made inside the script from their prefix: the day is known only there,
by Redis's clock, and the shared tag keeps them on the same node.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from coupon_workers.runtime.gate_keys import GateKeys

WARM_TEMPLATES = "cw:warm-templates"
"""Set of ``<template_id>.<bucket>`` that have been preheated: where to ask for a claim that is still queued."""

HELD = "held:"
"""Prefix of fields of ``meta``: ``held:<amount>``, how many of the amount the pool's list still holds although a
queued claim has them."""


@dataclass(frozen=True, slots=True)
class BucketKeys(GateKeys):
    """The keys of one bucket of one template, as ``lua/claim.lua`` says what they hold."""

    template_id: int
    bucket: int = 0

    @property
    def tag(self) -> str:
        """``t``, the template's id and the bucket."""
        return f"t{self.template_id}.{self.bucket}"

    @property
    def claims(self) -> str:
        """Hash claim id → instant of acceptance in ms, for as long as the claim is queued."""
        return self._key("claims")

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


def bucket_of(user_id: str, bucket_count: int) -> int:
    """The bucket of a user: stable across processes and releases (CRC-32 of the UTF-8 text)."""
    return crc32(user_id.encode()) % bucket_count if bucket_count > 1 else 0
