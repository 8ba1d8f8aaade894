"""DESIGN 3.2: an accepted claim is never lost, and none is called queued that is not."""

from __future__ import annotations

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.claim_end import claim_ends
from coupon_workers.checking.gate_reading import gate_errors, hash_fields, known_buckets, queued_claims
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.services import Services

RULE = "no_lost_claim"

QUEUED = "queued"


def no_lost_claim(services: Services) -> list[Breach]:
    """Claims that the gate calls queued and that are not in the pending stream.

    Acknowledging takes an entry off the stream and its marks off the gate in one step: read in the order marks,
    stream, marks again, a claim with marks and no entry is lost (the database does not know it) or forgotten (it has
    ended and its client is still told to wait). Raises ``StoreUnavailable``.
    """
    breaches: list[Breach] = []
    for keys in known_buckets(services.redis):
        breaches += _without_entry(services, keys)
        if len(breaches) >= BREACH_LIMIT:
            break
    return breaches[:BREACH_LIMIT]


def _without_entry(services: Services, keys: BucketKeys) -> list[Breach]:
    marked = _marked(services, keys)
    if not marked:
        return []
    in_stream = {claim.claim_id for claim in queued_claims(services.redis, keys)}
    absent = [
        claim_id
        for claim_id, request in marked.items()
        if claim_id not in in_stream and _still_marked(services, keys, claim_id, request)
    ]
    ends = claim_ends(services, absent)
    return [
        Breach(
            RULE,
            f"template {keys.template_id} claim {claim_id}",
            "an entry in the pending stream, as it is called queued",
            f"ended as {ends[claim_id].state}" if claim_id in ends else "nowhere",
        )
        for claim_id in sorted(absent)
    ]


def _marked(services: Services, keys: BucketKeys) -> dict[int, str]:
    """Claim ids that either hash calls queued → the request, "" when only the claims hash names them.

    As many as the backlog limit allows, in a sound system.
    """
    marked = {int(claim_id): "" for _, claim_id, _ in hash_fields(services.redis, [keys.claims])}
    for _, request, stored in hash_fields(services.redis, [keys.requests]):
        claim_id, _, state = stored.partition(" ")
        if state == QUEUED:
            marked[int(claim_id)] = request
    return marked


def _still_marked(services: Services, keys: BucketKeys, claim_id: int, request: str) -> bool:
    with gate_errors():
        if services.redis.hexists(keys.claims, str(claim_id)):
            return True
        stored = services.redis.hget(keys.requests, request) if request else None
    return stored == f"{claim_id} {QUEUED}".encode()
