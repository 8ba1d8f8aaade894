"""Judging claims against the database's books: the careful way, taken when the fast way meets anything unusual.

Pure: the books come in, verdicts go out. Rules: DESIGN 3 (invariants 1-4) and DESIGN 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from coupon_workers.claiming.outcome import HELD, RejectionReason
from coupon_workers.claiming.pending import PendingClaim

Request = tuple[str, str]
"""A request belongs to its user: (user_id, request_id), within one template."""


@dataclass(slots=True)
class Books:
    """What the database knows of the users and requests of a batch, within one template.

    ``room`` is how many coupons may still be issued. ``held`` counts a user's coupons, ``held_on_day`` those of a
    local day, ``last_seq`` is the highest number a user ever had. ``answered`` maps a request to the claim that
    answered it first and the reason it was rejected for, None when it was issued; ``duplicates`` are later claims of
    answered requests that are written down already. ``values_left`` is, for a template with a pool, how often each face
    value that a claim of the batch has drawn is left in it. The numbers move on as verdicts are given.
    """

    room: int
    status: str
    pause_epoch: int
    user_limit: int | None
    daily_limit: int | None
    held: Counter[str] = field(default_factory=Counter)
    held_on_day: Counter[tuple[str, str]] = field(default_factory=Counter)
    last_seq: dict[str, int] = field(default_factory=dict)
    taken_seqs: set[tuple[str, int]] = field(default_factory=set)
    answered: dict[Request, tuple[int, str | None]] = field(default_factory=dict)
    duplicates: set[int] = field(default_factory=set)
    values_left: Counter[int] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a claim ends. ``reason`` None: it is issued, under ``claim_seq``; "held": it waits for review. ``new``: this
    is to be written now.

    ``redraw``: what it has drawn is not in the pool any more, because Redis had lost its memory, and the pool is asked
    for another; its caller has not been told any.

    ``answer`` is what its request is answered with: "<claim id> <state>", of the first claim when it is a duplicate.
    """

    claim: PendingClaim
    reason: str | None
    claim_seq: int
    new: bool
    answer: str
    redraw: bool = False


def judge(claims: Sequence[PendingClaim], books: Books) -> list[Verdict]:
    """A verdict for each claim, in order; earlier claims take room and allowance from later ones.

    A claim that the database knows already gets its old verdict with ``new=False``. A number (``claim_seq``) that is
    taken, because Redis had lost its memory, is replaced by the user's next one.
    """
    return [_judge_one(claim, books) for claim in claims]


def reject_unstorable(claim: PendingClaim) -> Verdict:
    """The verdict on a claim whose coupon the database refuses."""
    reason = RejectionReason.INVALID
    return Verdict(claim, reason, claim.claim_seq, new=True, answer=f"{claim.claim_id} {reason}")


def _judge_one(claim: PendingClaim, books: Books) -> Verdict:
    request = (claim.user_id, claim.request_id)
    before = books.answered.get(request)
    if before is not None:
        claim_id, reason = before
        answer = f"{claim_id} {reason or 'issued'}"
        if claim_id == claim.claim_id:
            return Verdict(claim, reason, claim.claim_seq, new=False, answer=answer)
        new = claim.claim_id not in books.duplicates
        return Verdict(claim, RejectionReason.DUPLICATE, claim.claim_seq, new=new, answer=answer)
    refusal: str | None = _refusal(claim, books)
    if refusal is None and claim.review_rule is not None:
        refusal = HELD
    books.answered[request] = (claim.claim_id, refusal)
    answer = f"{claim.claim_id} {refusal or 'issued'}"
    if refusal and refusal != HELD:
        return Verdict(claim, refusal, claim.claim_seq, new=True, answer=answer)
    return Verdict(claim, refusal, _issue(claim, books), new=True, answer=answer, redraw=_is_gone(claim, books))


def _refusal(claim: PendingClaim, books: Books) -> RejectionReason | None:
    if claim.epoch < books.pause_epoch or books.status in ("paused", "offline", "archived"):
        return RejectionReason.OFFLINE if books.status in ("offline", "archived") else RejectionReason.PAUSED
    if books.user_limit is not None and books.held[claim.user_id] >= books.user_limit:
        return RejectionReason.LIMIT_REACHED
    if books.daily_limit is not None and claim.day and books.held_on_day[claim.user_id, claim.day] >= books.daily_limit:
        return RejectionReason.DAILY_LIMIT_REACHED
    if books.room <= 0:
        return RejectionReason.SOLD_OUT
    return None


def _is_gone(claim: PendingClaim, books: Books) -> bool:
    """Whether the pool has what the claim drew no more; if it has, it is the claim's now."""
    if books.values_left is None:
        return False
    if claim.face_value is None or books.values_left[claim.face_value] <= 0:
        return True
    books.values_left[claim.face_value] -= 1
    return False


def _issue(claim: PendingClaim, books: Books) -> int:
    seq = claim.claim_seq
    if (claim.user_id, seq) in books.taken_seqs:
        seq = books.last_seq.get(claim.user_id, 0) + 1
    books.taken_seqs.add((claim.user_id, seq))
    books.last_seq[claim.user_id] = max(seq, books.last_seq.get(claim.user_id, 0))
    books.room -= 1
    books.held[claim.user_id] += 1
    books.held_on_day[claim.user_id, claim.day] += 1
    return seq
