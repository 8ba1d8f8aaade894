"""The pending stream: the record of accepted claims that are not settled. The Dramatiq message is only the bell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import redis
from redis.exceptions import RedisError

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lua_script import lua_script

MAX_ID = 2**63 - 1

Entry = tuple[bytes, dict[bytes, bytes]]

BELL_TTL_MS = 3_000
"""A bell that was rung and not answered in this time may be rung again: a lost message costs this much latency."""


@dataclass(frozen=True, slots=True)
class PendingClaim:
    """One accepted claim. ``day`` is the number of the local day as text, "" when the template has no daily limit."""

    entry_id: str
    claim_id: int
    user_id: str
    request_id: str
    claim_seq: int
    claimed_at_ms: int
    day: str
    epoch: int
    channel: str | None

    @property
    def request(self) -> str:
        """The field of this claim in the ``requests`` hash."""
        return f"{self.user_id} {self.request_id}"


@dataclass(frozen=True, slots=True)
class Poison:
    """An entry that no claim can be read from."""

    entry_id: str
    payload: str
    reason: str


def read_pending(client: redis.Redis, keys: BucketKeys, count: int) -> tuple[list[PendingClaim], list[Poison]]:
    """The oldest ``count`` entries, whoever may have read them before. Raises ``StoreUnavailable``."""
    try:
        entries = cast(list[Entry], client.xrange(keys.pending, count=count))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    claims: list[PendingClaim] = []
    poison: list[Poison] = []
    for entry_id, fields in entries:
        try:
            claims.append(_parse(entry_id.decode(), fields))
        except (KeyError, ValueError) as error:
            poison.append(Poison(entry_id.decode(), repr(fields)[:10_000], f"{type(error).__name__}: {error}"))
    return claims, poison


def _parse(entry_id: str, fields: dict[bytes, bytes]) -> PendingClaim:
    claim = PendingClaim(
        entry_id,
        int(fields[b"c"]),
        fields[b"u"].decode(),
        fields[b"r"].decode(),
        int(fields[b"s"]),
        int(fields[b"t"]),
        fields[b"d"].decode(),
        int(fields[b"e"]),
        fields[b"h"].decode() or None,
    )
    if not 0 < claim.claim_id <= MAX_ID or not 0 < claim.claim_seq <= MAX_ID:
        raise ValueError("a number is out of range")
    if not 0 < claim.claimed_at_ms < 253_402_300_800_000:
        raise ValueError("the instant is out of range")
    if not claim.user_id or "\x00" in claim.request or "\x00" in (claim.channel or ""):
        raise ValueError("a text cannot be stored")
    return claim


def acknowledge(client: redis.Redis, keys: BucketKeys, ended: list[tuple[PendingClaim, str]]) -> int:
    """Take settled claims off the stream, each with its state: "issued" or the reason of its rejection.

    Returns how many this call acknowledged; the rest had been acknowledged before. Raises ``StoreUnavailable``: the
    entries that are still there come again.
    """
    args: list[str | int] = []
    for claim, state in ended:
        args += (claim.entry_id, claim.claim_id, claim.request, claim.day, state)
    return int(
        lua_script("acknowledge_claims")(
            client,
            [keys.stock, keys.takers, keys.requests, keys.claims, keys.pending, keys.day_prefix],
            args,
        )
    )


def remove_poison(client: redis.Redis, keys: BucketKeys, poison: list[Poison]) -> None:
    """Take entries off the stream that have been set aside. Raises ``StoreUnavailable``."""
    try:
        client.xdel(keys.pending, *(entry.entry_id for entry in poison))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error


def close_bell(client: redis.Redis, keys: BucketKeys) -> bool:
    """End the drain when nothing is pending; False when there is more to do. Raises ``StoreUnavailable``."""
    return bool(lua_script("close_bell")(client, [keys.pending, keys.bell], [BELL_TTL_MS]) == b"CLOSED")
