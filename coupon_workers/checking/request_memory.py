"""DESIGN 3.3: the gate answers a repeated request as the database ended it, so every request is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import text

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.claim_end import claim_ends
from coupon_workers.checking.gate_reading import CHUNK, gate_errors, hash_chunks, warm_buckets
from coupon_workers.checking.no_lost_claim import QUEUED
from coupon_workers.checking.reading import snapshot
from coupon_workers.claiming.key import BucketKeys, bucket_of
from coupon_workers.claiming.outcome import RejectionReason
from coupon_workers.runtime.services import Services

RULE = "request_memory"

_SETTLED = text("""
    (SELECT coupon_id AS claim_id, user_id, request_id, 'issued' AS state FROM coupon
      WHERE template_id = :template_id AND coupon_id > :after ORDER BY coupon_id LIMIT :page)
     UNION ALL
    (SELECT claim_id, user_id, request_id, reason FROM claim_rejection
      WHERE template_id = :template_id AND claim_id > :after ORDER BY claim_id LIMIT :page)
     ORDER BY claim_id LIMIT :page
""")


def request_memory(services: Services) -> list[Breach]:
    """Requests that the gate of a warm template remembers otherwise than they ended, or not at all.

    Safe under traffic: a request is in the gate's memory before it is in the database. Raises ``StoreUnavailable``.
    """
    breaches: list[Breach] = []
    for found in _all(services):
        breaches += found
        if len(breaches) >= BREACH_LIMIT:
            return breaches[:BREACH_LIMIT]
    return breaches


def _all(services: Services) -> Iterator[list[Breach]]:
    buckets = warm_buckets(services.redis)
    counts = {keys.template_id: 0 for keys in buckets}
    for keys in buckets:
        counts[keys.template_id] += 1
        for chunk in hash_chunks(services.redis, keys.requests):
            yield _told_otherwise(services, keys, chunk)
    for template_id, bucket_count in counts.items():
        for page in _settled(services, template_id):
            yield _forgotten(services, template_id, bucket_count, page)


def _told_otherwise(services: Services, keys: BucketKeys, chunk: dict[str, str]) -> list[Breach]:
    """Fields that name an end the database does not know of that claim."""
    remembered: dict[int, tuple[str, str, str]] = {}
    for request, stored in chunk.items():
        user_id, _, request_id = request.partition(" ")
        told_id, _, state = stored.partition(" ")
        if state != QUEUED:
            remembered[int(told_id)] = (user_id, request_id, state)
    ends = claim_ends(services, remembered)
    breaches = []
    for claim_id, (user_id, request_id, state) in remembered.items():
        end = ends.get(claim_id)
        if end is None or tuple(end) != (keys.template_id, user_id, request_id, state):
            actual = f"claim {claim_id} {state}"
            breaches.append(Breach(RULE, _subject(keys.template_id, user_id, request_id), str(end), actual))
    return breaches


def _settled(services: Services, template_id: int) -> Iterator[list[Any]]:
    """Every settled claim of a template, a page at a time."""
    after = 0
    while True:
        with snapshot(services) as connection:
            page = list(connection.execute(_SETTLED, {"template_id": template_id, "after": after, "page": CHUNK}))
        if not page:
            return
        yield page
        after = page[-1].claim_id


def _forgotten(services: Services, template_id: int, bucket_count: int, page: list[Any]) -> list[Breach]:
    """Settled claims whose request the gate does not know, or knows as another claim.

    A claim rejected as DUPLICATE is not its request's answer: the claim that it doubles is.
    """
    pipeline = services.redis.pipeline(transaction=False)
    for row in page:
        keys = BucketKeys(template_id, bucket_of(row.user_id, bucket_count))
        pipeline.hget(keys.requests, f"{row.user_id} {row.request_id}")
    with gate_errors():
        memory = pipeline.execute()
    breaches = []
    for row, stored in zip(page, memory, strict=True):
        claim_id = (stored or b"").partition(b" ")[0].decode()
        if stored is not None and (claim_id == str(row.claim_id) or row.state == RejectionReason.DUPLICATE):
            continue
        actual = "forgotten" if stored is None else f"claim {stored.decode()}"
        subject = _subject(template_id, row.user_id, row.request_id)
        breaches.append(Breach(RULE, subject, f"claim {row.claim_id} {row.state}", actual))
    return breaches


def _subject(template_id: int, user_id: str, request_id: str) -> str:
    return f"template {template_id} user {user_id} request {request_id}"
