"""What the answers of one run must agree on, whatever broke meanwhile (FAULTS.md, C and H; DESIGN 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.told_claim import ToldClaim
from coupon_workers.load.claim_call import ClaimKind
from coupon_workers.load.history import NO_ANSWER, ClaimHistory, HeardClaim

RULE = "equal_answers"

_FINAL = frozenset({"issued", "rejected"})
_Request = tuple[str, str, str]


@dataclass(slots=True)
class _Heard:
    """What has been heard of one request so far."""

    claim_id: int
    since_ms: float
    times_accepted: int = 0
    final_word: str = ""
    final_since_ms: float = float("inf")


def inconsistencies(history: ClaimHistory) -> list[Breach]:
    """Every answer that contradicts an earlier one, or that no client should ever hear.

    One request has one claim id, and a claim id one request; a request is newly accepted (202) once; after a client
    has heard that it was accepted, the same request is answered with it, and an end (issued, rejected) never changes;
    a refusal is a 4xx or a 503 with a code, never a 500; a wrong body is a 4xx.
    """
    found: list[Breach] = []
    for breach in _contradictions(history):
        found.append(breach)
        if len(found) >= BREACH_LIMIT:
            break
    return found


def told_claims(history: ClaimHistory) -> list[ToldClaim]:
    """Each claim that any client was told of, once."""
    claims: dict[int, ToldClaim] = {}
    for heard in history:
        if heard.claim_id and heard.claim_id not in claims:
            call = heard.call
            claims[heard.claim_id] = ToldClaim(heard.claim_id, int(call.template_id), call.user_id, call.request_id)
    return list(claims.values())


def _contradictions(history: ClaimHistory) -> Iterator[Breach]:
    requests: dict[_Request, _Heard] = {}
    owners: dict[int, _Request] = {}
    for heard in history:
        if heard.status == NO_ANSWER:
            continue
        request = (heard.call.template_id, heard.call.user_id, heard.call.request_id)
        subject = "template {} user {} request {}".format(*request)
        yield from _unheard_of(heard, subject)
        if heard.call.kind is ClaimKind.WRONG:
            continue
        if heard.claim_id:
            owner = owners.setdefault(heard.claim_id, request)
            if owner != request:
                yield Breach(RULE, f"claim {heard.claim_id}", "one request", f"{owner} and {request}")
            known = requests.setdefault(request, _Heard(heard.claim_id, heard.heard_ms))
            yield from _differs(known, heard, subject)
        elif request in requests:
            yield from _forgets(requests[request], heard, subject)


def _unheard_of(heard: HeardClaim, subject: str) -> Iterator[Breach]:
    if heard.call.kind is ClaimKind.WRONG:
        if not (400 <= heard.status < 500 and heard.word):
            yield Breach(RULE, subject, "a 4xx with a code for a wrong body", f"{heard.status} {heard.word}")
    elif heard.status in (200, 202):
        if not heard.claim_id:
            yield Breach(RULE, subject, "a claim id", f"{heard.status} without one")
    elif not ((400 <= heard.status < 500 or heard.status == 503) and heard.word):
        yield Breach(RULE, subject, "202, 200, or a 4xx or 503 with a code", f"{heard.status} {heard.word}".rstrip())


def _differs(known: _Heard, heard: HeardClaim, subject: str) -> Iterator[Breach]:
    if heard.claim_id != known.claim_id:
        yield Breach(RULE, subject, f"claim {known.claim_id}", f"claim {heard.claim_id}")
    if heard.status == 202:
        known.times_accepted += 1
        if known.times_accepted > 1:
            yield Breach(RULE, subject, "accepted once", f"accepted {known.times_accepted} times")
    if heard.word in _FINAL:
        if known.final_word and known.final_word != heard.word:
            yield Breach(RULE, subject, f"{known.final_word} for good", heard.word)
        known.final_word = known.final_word or heard.word
        known.final_since_ms = min(known.final_since_ms, heard.heard_ms)
    elif heard.sent_ms > known.final_since_ms:
        yield Breach(RULE, subject, f"{known.final_word} for good", heard.word)


def _forgets(known: _Heard, heard: HeardClaim, subject: str) -> Iterator[Breach]:
    """A refusal of a request that its client knew to be accepted; a 503 only says "ask later"."""
    if heard.sent_ms > known.since_ms and heard.status != 503:
        yield Breach(RULE, subject, f"claim {known.claim_id} again", f"{heard.status} {heard.word}")
