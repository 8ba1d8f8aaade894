"""DESIGN 3.3: the gate answers a repeated request as the database ended it, so every request is remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.claim_end import ClaimEnd, claim_ends
from coupon_workers.checking.gate_reading import chunks, gate_errors, hash_fields, still_warm, warm_buckets
from coupon_workers.checking.no_lost_claim import QUEUED
from coupon_workers.checking.patience import PATIENCE_S, looks
from coupon_workers.checking.settled_claim import coupon_pages, held_pages, rejection_pages
from coupon_workers.claiming.key import BucketKeys, bucket_of
from coupon_workers.claiming.outcome import RejectionReason
from coupon_workers.runtime.services import Services

RULE = "request_memory"

Request = tuple[BucketKeys, str]
"""A field of a bucket's ``requests``."""

Settled = tuple[BucketKeys, Any]
"""A row of ``settled_claim.py``, and the bucket of its user."""


def request_memory(services: Services, patience_s: float = PATIENCE_S) -> list[Breach]:
    """Requests that the gate of a warm template remembers otherwise than they ended, or not at all.

    A request is in the gate's memory before it is in the database; only the end of a review is in the database first.
    What seems wrong is looked at again until it is right, or stays wrong for ``patience_s`` seconds. Raises
    ``StoreUnavailable``.
    """
    told, forgotten = _first_look(services)
    for last in looks(patience_s):
        if last or not (told or forgotten):
            break
        told = _told_otherwise(services, list(_stored(services, told)))
        forgotten = _forgotten(services, list(forgotten))
    return [*told.values(), *forgotten.values()][:BREACH_LIMIT]


def _first_look(services: Services) -> tuple[dict[Request, Breach], dict[Settled, Breach]]:
    buckets = warm_buckets(services.redis)
    keys_of = {keys.requests: keys for keys in buckets}
    told: dict[Request, Breach] = {}
    for chunk in chunks(hash_fields(services.redis, keys_of)):
        told |= _told_otherwise(services, [(keys_of[key], request, stored) for key, request, stored in chunk])
        if len(told) >= BREACH_LIMIT:
            break
    of_template: dict[int, list[BucketKeys]] = {}
    for keys in buckets:
        of_template.setdefault(keys.template_id, []).append(keys)
    forgotten: dict[Settled, Breach] = {}
    for page in chain(coupon_pages(services), rejection_pages(services), held_pages(services)):
        claims = [row for row in page if row.source == "claim" and row.template_id in of_template]
        forgotten |= _forgotten(services, [(_bucket(of_template[row.template_id], row.user_id), row) for row in claims])
        if len(forgotten) >= BREACH_LIMIT:
            break
    return told, forgotten


def _bucket(buckets: Sequence[BucketKeys], user_id: str) -> BucketKeys:
    return buckets[bucket_of(user_id, len(buckets))]


def _stored(services: Services, requests: Iterable[Request]) -> Iterator[tuple[BucketKeys, str, str]]:
    """What the gate remembers of them, of those that it does."""
    asked = list(requests)
    for (keys, request), stored in zip(asked, _memory(services, asked), strict=True):
        if stored is not None:
            yield keys, request, stored.decode()


def _memory(services: Services, requests: Sequence[Request]) -> list[bytes | None]:
    pipeline = services.redis.pipeline(transaction=False)
    for keys, request in requests:
        pipeline.hget(keys.requests, request)
    with gate_errors():
        return list(pipeline.execute())


def _told_otherwise(services: Services, fields: Sequence[tuple[BucketKeys, str, str]]) -> dict[Request, Breach]:
    """Fields that name an end the database does not know of that claim."""
    remembered: dict[Request, tuple[int, ClaimEnd]] = {}
    for keys, request, stored in fields:
        user_id, _, request_id = request.partition(" ")
        claim_id, _, state = stored.partition(" ")
        if state != QUEUED:
            remembered[keys, request] = int(claim_id), ClaimEnd(keys.template_id, user_id, request_id, state)
    ends = claim_ends(services, {claim_id for claim_id, _ in remembered.values()})
    return {
        request: Breach(RULE, _subject(memory), str(ends.get(claim_id)), f"claim {claim_id} {memory.state}")
        for request, (claim_id, memory) in remembered.items()
        if ends.get(claim_id) != memory
    }


def _forgotten(services: Services, claims: Sequence[Settled]) -> dict[Settled, Breach]:
    """Settled claims whose request the gate does not know, or knows as another claim; none of a gate that has gone
    cold meanwhile: it was retired, or Redis has lost its memory.

    A claim rejected as DUPLICATE is not its request's answer: the claim that it doubles is.
    """
    memory = _memory(services, [(keys, f"{row.user_id} {row.request_id}") for keys, row in claims])
    breaches = {}
    for (keys, row), stored in zip(claims, memory, strict=True):
        claim_id = (stored or b"").partition(b" ")[0].decode()
        if stored is not None and (claim_id == str(row.claim_id) or row.state == RejectionReason.DUPLICATE):
            continue
        actual = "forgotten" if stored is None else f"claim {stored.decode()}"
        subject = _subject(ClaimEnd(row.template_id, row.user_id, row.request_id, row.state))
        breaches[keys, row] = Breach(RULE, subject, f"claim {row.claim_id} {row.state}", actual)
    warm = still_warm(services.redis, {keys for keys, _ in breaches})
    return {claim: breach for claim, breach in breaches.items() if claim[0] in warm}


def _subject(memory: ClaimEnd) -> str:
    return f"template {memory.template_id} user {memory.user_id} request {memory.request_id}"
