"""What clients may hear: C, D and H of FAULTS.md, read out of the history and held against the stores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.support.history import Operation, Request
from tests.support.history_books import StoreBooks

_FINAL = ("issued", "rejected")


def unequal_answers(operations: Sequence[Operation], books: StoreBooks) -> Iterator[str]:
    """C: one request has one claim id, one effect and equal answers; one claim id has one request."""
    owners: dict[int, set[Request]] = defaultdict(set)
    for request, told in _claims_by_request(operations).items():
        for operation in told:
            if operation.claim_id:
                owners[operation.claim_id].add(request)
        yield from _unequal(request, told)
    for claim_id, requests in owners.items():
        if len(requests) > 1:
            yield f"claim {claim_id} answered {sorted(requests)}"
    yield from _several_effects(owners, books)


def _claims_by_request(operations: Sequence[Operation]) -> dict[Request, list[Operation]]:
    found: dict[Request, list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.name == "claim":
            found[operation.request].append(operation)
    return found


def _unequal(request: Request, told: Sequence[Operation]) -> Iterator[str]:
    answers = [operation for operation in told if operation.claim_id]
    claim_ids = {operation.claim_id for operation in answers}
    if len(claim_ids) > 1:
        yield f"request {request} was answered claims {sorted(claim_ids)}"
    if sum(operation.status == 202 for operation in answers) > 1:
        yield f"request {request} was accepted more than once"
    if not answers:
        return
    known_s = min(operation.heard_s for operation in answers)
    for operation in told:
        forgotten = operation.heard == "refused" and operation.status != 503
        if forgotten and operation.sent_s > known_s:
            yield f"request {request} was accepted, then answered {operation.status} {operation.code}"
    ended = [operation for operation in answers if operation.state in _FINAL]
    if not ended:
        return
    first = min(ended, key=lambda operation: operation.heard_s)
    for operation in answers:
        if operation.sent_s > first.heard_s and operation.state != first.state:
            yield f"request {request} was {first.state}, then {operation.state}"


def _several_effects(owners: dict[int, set[Request]], books: StoreBooks) -> Iterator[str]:
    effects: dict[Request, list[int]] = defaultdict(list)
    for row in books.coupons:
        effects[str(row.template_id), row.user_id, row.request_id].append(row.coupon_id)
    for row in books.rejections:
        if row.reason != "DUPLICATE":
            effects[str(row.template_id), row.user_id, row.request_id].append(row.claim_id)
    for request, claim_ids in effects.items():
        if len(claim_ids) > 1:
            yield f"request {request} had several effects: {claim_ids}"
        for claim_id in claim_ids:
            if claim_id in owners and request not in owners[claim_id]:
                yield f"claim {claim_id} was told to {owners[claim_id]} and is written as {request}"


def lost_claims(operations: Sequence[Operation], books: StoreBooks) -> Iterator[str]:
    """D: whoever was told ``issued`` has a coupon, and whoever was told ``queued`` has been issued or rejected."""
    ends = books.ends
    told: dict[int, float] = {}
    for operation in operations:
        if not operation.claim_id:
            continue
        known = operation.claim_id in told
        told[operation.claim_id] = min(told.get(operation.claim_id, operation.heard_s), operation.heard_s)
        end = ends.get(operation.claim_id, "nowhere")
        if end == "nowhere" and not known:
            yield f"claim {operation.claim_id} was told {operation.state} and is nowhere"
        elif operation.state in _FINAL and (operation.state == "issued") != (end == "issued"):
            yield f"claim {operation.claim_id} was told {operation.state} and is {end}"
    yield from _denied(operations, told)


def _denied(operations: Sequence[Operation], told: dict[int, float]) -> Iterator[str]:
    for operation in operations:
        if operation.name == "status" and operation.status == 404:
            claim_id = int(operation.args["target"].rpartition("/")[2])
            if operation.sent_s > told.get(claim_id, float("inf")):
                yield f"claim {claim_id} was told, then answered 404"


def bad_refusals(operations: Sequence[Operation]) -> Iterator[str]:
    """H: a refusal is a 4xx, 429 or 503 with a code, never another 5xx; what is to be asked again says when."""
    for operation in operations:
        if operation.heard == "unknown":
            continue
        subject = f"{operation.name} {operation.args} → {operation.status} {operation.code}"
        if operation.name == "wrong" and not (400 <= operation.status < 500 or operation.status == 503):
            yield f"a wrong body was not refused: {subject}"
        elif operation.heard == "refused" and not (400 <= operation.status < 500 or operation.status == 503):
            yield f"an answer that no client may get: {subject}"
        elif operation.heard == "refused" and not operation.code:
            yield f"a refusal without a code: {subject}"
        elif operation.status in (429, 503) and not operation.headers.get("retry-after"):
            yield f"no Retry-After: {subject}"
