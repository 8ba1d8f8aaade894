"""Counting a history, and finding the answers in it that contradict one another."""

from __future__ import annotations

import pytest

from coupon_workers.load.claim_call import ClaimCall, ClaimKind
from coupon_workers.load.consistency import inconsistencies, told_claims
from coupon_workers.load.history import NO_ANSWER, ClaimHistory, HeardClaim
from coupon_workers.load.percentile import percentile
from coupon_workers.load.tally import tally

ANN = ClaimCall("1", "ann", "r1")
BOB = ClaimCall("1", "bob", "r1")
WRONG = ClaimCall("1", "ann", "r2", ClaimKind.WRONG)


def heard(
    call: ClaimCall, status: int, word: str = "", claim_id: int = 0, *, sent_ms: float = 0.0, heard_ms: float = 1.0
) -> HeardClaim:
    """One line of a history."""
    return HeardClaim(call, status, word, claim_id, sent_ms, sent_ms, heard_ms, attempts=1)


def history_of(*lines: HeardClaim) -> ClaimHistory:
    """A history with these lines."""
    history = ClaimHistory()
    for line in lines:
        history.add(line)
    return history


SOUND = (
    heard(ANN, 202, "queued", 11, sent_ms=0, heard_ms=10),
    heard(ANN, 200, "queued", 11, sent_ms=5, heard_ms=12),
    heard(ANN, 200, "issued", 11, sent_ms=20, heard_ms=21),
    heard(ANN, 503, "UNAVAILABLE", sent_ms=22, heard_ms=23),
    heard(BOB, 409, "SOLD_OUT", sent_ms=0, heard_ms=30),
    heard(BOB, 202, "queued", 12, sent_ms=31, heard_ms=32),
    heard(WRONG, 422, "INVALID", sent_ms=0, heard_ms=33),
    heard(BOB, NO_ANSWER, sent_ms=40, heard_ms=1_000),
)


def test_a_history_is_counted() -> None:
    """Each call has one end, and the ends sum to the calls sent."""
    counts = tally(history_of(*SOUND))

    assert (8, 2, 2) == (counts.sent, counts.accepted, counts.replayed)
    assert {"SOLD_OUT": 1, "UNAVAILABLE": 1} == counts.refused
    assert (1, 1, 2) == (counts.wrong, counts.unknown, counts.claim_ids)
    assert counts.sent == counts.accepted + counts.replayed + counts.refused.total() + counts.wrong + counts.unknown
    assert counts.claims_per_s == pytest.approx(8.0)
    assert [1, 1, 1, 7, 10, 30, 33] == counts.answer_ms


def test_a_server_error_is_counted_apart() -> None:
    """A 500, a 4xx without a code, and a wrong body that was accepted are errors, not refusals."""
    counts = tally(history_of(heard(ANN, 500), heard(ANN, 404), heard(WRONG, 202, "queued", 3)))

    assert {500: 1, 404: 1, 202: 1} == counts.errors


def test_an_empty_history_is_counted() -> None:
    """Nothing sent: no percentile, no rate, no error."""
    counts = tally(ClaimHistory())

    assert (0, 0.0, None) == (counts.sent, counts.claims_per_s, counts.answer_percentile_ms(99))


def test_sound_answers_do_not_contradict() -> None:
    """Concurrent repeats, a later 503, and an acceptance after a refusal are in order."""
    found = inconsistencies(history_of(*SOUND))

    assert not found


CONTRADICTIONS = {
    "two claim ids for a request": (heard(ANN, 202, "queued", 11), heard(ANN, 200, "queued", 12)),
    "one claim id for two requests": (heard(ANN, 202, "queued", 11), heard(BOB, 202, "queued", 11)),
    "accepted twice": (heard(ANN, 202, "queued", 11), heard(ANN, 202, "queued", 11)),
    "refused after it was accepted": (heard(ANN, 202, "queued", 11), heard(ANN, 409, "LIMIT_REACHED", sent_ms=2)),
    "issued, then rejected": (heard(ANN, 200, "issued", 11), heard(ANN, 200, "rejected", 11, sent_ms=2)),
    "issued, then queued": (heard(ANN, 200, "issued", 11), heard(ANN, 200, "queued", 11, sent_ms=2)),
    "a server error": (heard(ANN, 500, "INTERNAL"),),
    "a refusal without a code": (heard(ANN, 409),),
    "an acceptance without a claim id": (heard(ANN, 202, "queued"),),
    "a wrong body accepted": (heard(WRONG, 202, "queued", 11),),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_found(name: str) -> None:
    """Each kind of broken promise is one breach."""
    found = inconsistencies(history_of(*CONTRADICTIONS[name]))

    assert 1 == len(found), found


def test_a_claim_is_told_once() -> None:
    """Whoever heard of it and how often: the claim, with its request."""
    told = told_claims(history_of(*SOUND))

    assert [(11, 1, "ann", "r1"), (12, 1, "bob", "r1")] == [tuple(claim) for claim in told]


def test_percentiles_are_nearest_ranks() -> None:
    """Of 1 to 200 the median is 100 and the 99th percentile 198; of one value all are that value."""
    values = [float(value) for value in range(1, 201)]

    assert (100.0, 198.0, 200.0) == (percentile(values, 50), percentile(values, 99), percentile(values, 100))
    assert 7.0 == percentile([7.0], 1)
    with pytest.raises(ValueError, match="percent"):
        percentile(values, 0)
