"""What the gate holds of a warm template: stock, queue, its count of users, and the claims that it calls queued."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from coupon_workers.checking.claim_end import ClaimEnd, claim_ends
from coupon_workers.checking.gate_reading import (
    GateMark,
    gate_errors,
    gate_marks,
    known_buckets,
    queued_claims,
)
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import HELD
from coupon_workers.claiming.pending import PendingClaim
from coupon_workers.runtime.services import Services

FIELDS_AT_A_TIME = 1_000
"""Some tenths of a millisecond of Redis, for which claims wait."""

QUEUED = b" queued"

Warm = Mapping[int, BucketKeys]
"""Warm templates with their keys: one bucket each, as long as ``ck_coupon_template_bucket_count`` says so."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A gate at one moment: two equal ones mean that nothing moved in it between them. ``oldest``: the entry that has
    waited longest; ``rung``: a bell is out."""

    gate: GateMark
    oldest: str | None
    rung: bool


@dataclass(frozen=True, slots=True)
class LostClaim:
    """A claim that the gate calls queued and that is not in the stream. ``end`` None: it is nowhere.

    ``user_id`` None: only the list of queued claims names it, so that no unit and no allowance belong to it.
    """

    claim_id: int
    user_id: str | None
    request_id: str | None
    end: ClaimEnd | None

    @property
    def holds_unit(self) -> bool:
        """Whether the gate's stock and the user's count are one short for it, beside what the rows say."""
        return self.user_id is not None and (self.end is None or self.end.state != "issued")


@dataclass(frozen=True, slots=True)
class GateBooks:
    """``queue``: claims that are no coupon yet. ``takers`` sums the CRC-32 of each user, as often as the gate counts
    him."""

    keys: BucketKeys
    mark: Mark
    queue: list[PendingClaim]
    takers: int
    lost: list[LostClaim]


def warm_templates(services: Services, template_ids: Collection[int] | None) -> dict[int, BucketKeys]:
    """Those of the templates, or of all, whose keys are whole. Raises ``StoreUnavailable``."""
    known = [
        keys
        for keys in known_buckets(services.redis)
        if keys.bucket == 0 and (template_ids is None or keys.template_id in template_ids)
    ]
    marks = gate_marks(services.redis, known)
    return {keys.template_id: keys for keys, mark in zip(known, marks, strict=True) if mark.generation is not None}


def read_marks(services: Services, warm: Warm) -> dict[int, Mark]:
    """The mark of each. Raises ``StoreUnavailable``."""
    buckets = list(warm.values())
    gates = gate_marks(services.redis, buckets)
    pipeline = services.redis.pipeline(transaction=False)
    for keys in buckets:
        pipeline.xrange(keys.pending, count=1)
        pipeline.exists(keys.bell)
    with gate_errors():
        replies = pipeline.execute()
    return {
        keys.template_id: Mark(gate, head[0][0].decode() if head else None, bool(rung))
        for keys, gate, head, rung in zip(buckets, gates, replies[0::2], replies[1::2], strict=True)
    }


def read_gate(services: Services, keys: BucketKeys, mark: Mark) -> GateBooks:
    """The gate's books of a template whose mark was taken before. Raises ``StoreUnavailable``."""
    queue = queued_claims(services.redis, keys) if mark.oldest is not None else []
    ends = claim_ends(services, [claim.claim_id for claim in queue])
    # One that was rejected and is not acknowledged has not given back its unit.
    in_books = {claim_id for claim_id, end in ends.items() if end.state in ("issued", HELD)}
    queue = [claim for claim in queue if claim.claim_id not in in_books]
    return GateBooks(keys, mark, queue, _takers(services, keys), lost_claims(services, keys))


def lost_claims(services: Services, keys: BucketKeys) -> list[LostClaim]:
    """Claims that the gate calls queued and that are not in the stream. Raises ``StoreUnavailable``.

    Marks are read before and after the stream: a claim that is settled meanwhile is none of them.
    """
    marked = _called_queued(services, keys)
    if not marked:
        return []
    in_stream = {claim.claim_id for claim in queued_claims(services.redis, keys)}
    absent = {claim_id: request for claim_id, request in marked.items() if claim_id not in in_stream}
    still = {claim_id: request for claim_id, request in absent.items() if _is_marked(services, keys, claim_id, request)}
    ends = claim_ends(services, still)
    return [_lost_claim(claim_id, request, ends.get(claim_id)) for claim_id, request in sorted(still.items())]


def _takers(services: Services, keys: BucketKeys) -> int:
    return sum(
        crc32(user) * int(value.partition(b" ")[0])
        for page in _pages(services, keys.takers)
        for user, value in page.items()
    )


def _called_queued(services: Services, keys: BucketKeys) -> dict[int, bytes | None]:
    """Claim id → the field of its request; None when only the list of queued claims names it."""
    marked: dict[int, bytes | None] = {}
    for page in _pages(services, keys.claims):
        marked |= dict.fromkeys(map(int, page))
    for page in _pages(services, keys.requests):
        marked |= {int(value[: -len(QUEUED)]): request for request, value in page.items() if value.endswith(QUEUED)}
    return marked


def _is_marked(services: Services, keys: BucketKeys, claim_id: int, request: bytes | None) -> bool:
    with gate_errors():
        if services.redis.hexists(keys.claims, str(claim_id)):
            return True
        stored: Any = services.redis.hget(keys.requests, request) if request else None
    return bool(stored == str(claim_id).encode() + QUEUED)


def _lost_claim(claim_id: int, request: bytes | None, end: ClaimEnd | None) -> LostClaim:
    if request is None:
        return LostClaim(claim_id, None, None, end)
    user_id, _, request_id = request.decode().partition(" ")
    return LostClaim(claim_id, user_id, request_id, end)


def _pages(services: Services, key: str) -> Iterator[dict[bytes, bytes]]:
    """The fields of a hash with their values, page by page, as bytes; a field may come twice while it changes."""
    cursor = 0
    while True:
        with gate_errors():
            reply: Any = services.redis.hscan(key, cursor, count=FIELDS_AT_A_TIME)
        cursor, page = reply
        yield page
        if cursor == 0:
            return
