"""DESIGN 3.2, from the client's side: each claim that a client was told of has ended, as that client's (FAULTS, D)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.claim_end import claim_ends
from coupon_workers.runtime.services import Services

RULE = "told_claims_ended"


class ToldClaim(NamedTuple):
    """A claim id that an answer carried, with the request it answered."""

    claim_id: int
    template_id: int
    user_id: str
    request_id: str


def told_claims_ended(services: Services, told: Sequence[ToldClaim]) -> list[Breach]:
    """Told claims that are neither issued nor rejected, or belong to another request.

    Ask when the queues are empty: a claim that is still queued has not ended.
    """
    breaches: list[Breach] = []
    ends = claim_ends(services, [claim.claim_id for claim in told])
    for claim in told:
        end = ends.get(claim.claim_id)
        if end is None:
            breaches.append(Breach(RULE, f"claim {claim.claim_id}", "issued or rejected", "unknown to the database"))
        elif end[:3] != claim[1:]:
            breaches.append(Breach(RULE, f"claim {claim.claim_id}", f"request {claim[1:]}", f"request {end[:3]}"))
        if len(breaches) >= BREACH_LIMIT:
            break
    return breaches
