"""Counts and times of a history: what a load's report shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from coupon_workers.load.claim_call import ClaimKind
from coupon_workers.load.history import NO_ANSWER, ClaimHistory, HeardClaim
from coupon_workers.load.percentile import percentile


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of calls. ``sent`` = ``accepted`` + ``replayed`` + refusals + ``wrong`` + ``errors`` + ``unknown``.

    ``attempts``: requests on the wire. ``refused``: code → calls, 503 among them. ``errors``: a status that is no
    expected answer, → calls. ``wrong``: calls with a wrong body that were refused. ``claim_ids``: distinct claims that
    were accepted, also when only a retry heard of it. ``answer_ms``: ascending, from a try to its answer.
    """

    sent: int
    attempts: int
    accepted: int
    replayed: int
    refused: Counter[str]
    wrong: int
    errors: Counter[int]
    unknown: int
    claim_ids: int
    elapsed_s: float
    answer_ms: list[float]

    @property
    def claims_per_s(self) -> float:
        """Calls that ended, a second, over the whole run."""
        return self.sent / self.elapsed_s if self.elapsed_s else 0.0

    def answer_percentile_ms(self, percent: int) -> float | None:
        """The time from a try to its answer that ``percent`` of 100 answers do not exceed."""
        return percentile(self.answer_ms, percent)


def tally(history: ClaimHistory) -> Tally:
    """Count ``history``."""
    ends: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    errors: Counter[int] = Counter()
    claim_ids: set[int] = set()
    answer_ms: list[float] = []
    attempts = 0
    first_ms, last_ms = float("inf"), float("-inf")
    for heard in history:
        end = _end_of(heard)
        ends[end] += 1
        attempts += heard.attempts
        first_ms, last_ms = min(first_ms, heard.first_sent_ms), max(last_ms, heard.heard_ms)
        if heard.claim_id:
            claim_ids.add(heard.claim_id)
        if heard.status != NO_ANSWER:
            answer_ms.append(heard.heard_ms - heard.sent_ms)
        if end == "refused":
            refused[heard.word] += 1
        elif end == "error":
            errors[heard.status] += 1
    return Tally(
        sent=len(history),
        attempts=attempts,
        accepted=ends["accepted"],
        replayed=ends["replayed"],
        refused=refused,
        wrong=ends["wrong"],
        errors=errors,
        unknown=ends["unknown"],
        claim_ids=len(claim_ids),
        elapsed_s=max(0.0, last_ms - first_ms) / 1000 if len(history) else 0.0,
        answer_ms=sorted(answer_ms),
    )


def _end_of(heard: HeardClaim) -> str:
    if heard.status == NO_ANSWER:
        return "unknown"
    if heard.call.kind is ClaimKind.WRONG:
        return "wrong" if 400 <= heard.status < 500 and heard.word else "error"
    if heard.status == 202:
        return "accepted"
    if heard.status == 200:
        return "replayed"
    if (400 <= heard.status < 500 or heard.status == 503) and heard.word:
        return "refused"
    return "error"
