"""DESIGN 3.3: the gate answers a repeated request as the database ended it, so every request is remembered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.claim_end import ClaimEnd, claim_ends
from coupon_workers.checking.gate_reading import chunks, gate_errors, hash_fields, warm_buckets
from coupon_workers.checking.no_lost_claim import QUEUED
from coupon_workers.checking.settled_claim import coupon_pages, held_pages, rejection_pages
from coupon_workers.claiming.key import BucketKeys, bucket_of
from coupon_workers.claiming.outcome import RejectionReason
from coupon_workers.runtime.services import Services

RULE = "request_memory"


def request_memory(services: Services) -> list[Breach]:
    """Requests that the gate of a warm template remembers otherwise than they ended, or not at all.

    Safe under traffic: a request is in the gate's memory before it is in the database. Raises ``StoreUnavailable``.
    """
    breaches: list[Breach] = []
    for found in _all(services):
        breaches += found
        if len(breaches) >= BREACH_LIMIT:
            break
    return breaches[:BREACH_LIMIT]


def _all(services: Services) -> Iterator[list[Breach]]:
    buckets = warm_buckets(services.redis)
    template_of = {keys.requests: keys.template_id for keys in buckets}
    for chunk in chunks(hash_fields(services.redis, template_of)):
        yield _told_otherwise(services, template_of, chunk)
    bucket_count: dict[int, int] = {}
    for keys in buckets:
        bucket_count[keys.template_id] = bucket_count.get(keys.template_id, 0) + 1
    for page in chain(coupon_pages(services), rejection_pages(services), held_pages(services)):
        claims = [row for row in page if row.source == "claim" and row.template_id in bucket_count]
        yield _forgotten(services, bucket_count, claims)


def _told_otherwise(
    services: Services, template_of: Mapping[str, int], chunk: Sequence[tuple[str, str, str]]
) -> list[Breach]:
    """Fields that name an end the database does not know of that claim."""
    remembered: dict[int, ClaimEnd] = {}
    for key, request, stored in chunk:
        user_id, _, request_id = request.partition(" ")
        claim_id, _, state = stored.partition(" ")
        if state != QUEUED:
            remembered[int(claim_id)] = ClaimEnd(template_of[key], user_id, request_id, state)
    ends = claim_ends(services, remembered)
    return [
        Breach(RULE, _subject(memory), str(ends.get(claim_id)), f"claim {claim_id} {memory.state}")
        for claim_id, memory in remembered.items()
        if ends.get(claim_id) != memory
    ]


def _forgotten(services: Services, bucket_count: Mapping[int, int], page: Sequence[Any]) -> list[Breach]:
    """Settled claims whose request the gate does not know, or knows as another claim.

    A claim rejected as DUPLICATE is not its request's answer: the claim that it doubles is.
    """
    pipeline = services.redis.pipeline(transaction=False)
    for row in page:
        keys = BucketKeys(row.template_id, bucket_of(row.user_id, bucket_count[row.template_id]))
        pipeline.hget(keys.requests, f"{row.user_id} {row.request_id}")
    with gate_errors():
        memory = pipeline.execute()
    breaches = []
    for row, stored in zip(page, memory, strict=True):
        claim_id = (stored or b"").partition(b" ")[0].decode()
        if stored is not None and (claim_id == str(row.claim_id) or row.state == RejectionReason.DUPLICATE):
            continue
        actual = "forgotten" if stored is None else f"claim {stored.decode()}"
        subject = _subject(ClaimEnd(row.template_id, row.user_id, row.request_id, row.state))
        breaches.append(Breach(RULE, subject, f"claim {row.claim_id} {row.state}", actual))
    return breaches


def _subject(memory: ClaimEnd) -> str:
    return f"template {memory.template_id} user {memory.user_id} request {memory.request_id}"
