"""Judging claims against the database's books: the careful way, in memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coupon_workers.claiming.pending import PendingClaim
from coupon_workers.claiming.verdict import Books, Verdict, judge, reject_unstorable


def claim(claim_id: int, user: str = "ann", request: str | None = None, **changed: Any) -> PendingClaim:
    """A claim; its request is its own unless one is named."""
    fields: dict[str, Any] = {
        "claim_seq": claim_id,
        "claimed_at_ms": 1,
        "day": "20000",
        "epoch": 0,
        "channel": None,
    } | changed
    return PendingClaim(f"{claim_id}-0", claim_id, user, request or f"r{claim_id}", **fields)


def books(**changed: Any) -> Books:
    """Books of an open template with room for ten and nothing in them."""
    fields: dict[str, Any] = {
        "room": 10,
        "status": "active",
        "pause_epoch": 0,
        "user_limit": None,
        "daily_limit": None,
    }
    return Books(**(fields | changed))


def reasons(verdicts: list[Verdict]) -> list[str | None]:
    """The reason of each, None for issued."""
    return [verdict.reason for verdict in verdicts]


def test_a_claim_without_objections_is_issued_under_its_own_number() -> None:
    """And answers its request."""
    (verdict,) = judge([claim(41, claim_seq=3)], books())

    assert (None, 3, True, "41 issued") == (verdict.reason, verdict.claim_seq, verdict.new, verdict.answer)


def test_earlier_claims_take_room_from_later_ones() -> None:
    """In the order of the stream."""
    verdicts = judge([claim(1), claim(2, "bob"), claim(3, "cat")], books(room=2))

    assert [None, None, "SOLD_OUT"] == reasons(verdicts)
    assert "3 SOLD_OUT" == verdicts[2].answer


@pytest.mark.parametrize("room", [0, -3])
def test_no_room_is_sold_out(room: int) -> None:
    """Below zero too: the total was lowered."""
    assert ["SOLD_OUT"] == reasons(judge([claim(1)], books(room=room)))


def test_a_users_limit_counts_what_he_holds_and_what_he_gets() -> None:
    """Another user has his own."""
    known = books(user_limit=2, held=Counter({"ann": 1}))

    assert [None, "LIMIT_REACHED", None] == reasons(judge([claim(1), claim(2), claim(3, "bob")], known))


def test_a_users_daily_limit_counts_the_days_apart() -> None:
    """By the day of acceptance."""
    known = books(daily_limit=1, held_on_day=Counter({("ann", "20000"): 1}))

    verdicts = judge([claim(1), claim(2, day="20001"), claim(3, day="20001"), claim(4, "bob")], known)

    assert ["DAILY_LIMIT_REACHED", None, "DAILY_LIMIT_REACHED", None] == reasons(verdicts)


@pytest.mark.parametrize(
    ("status", "reason"), [("paused", "PAUSED"), ("offline", "OFFLINE"), ("archived", "OFFLINE"), ("ended", None)]
)
def test_a_stopped_template_rejects_what_is_queued(status: str, reason: str | None) -> None:
    """One that ended does not: the claim came in time."""
    assert [reason] == reasons(judge([claim(1)], books(status=status)))


def test_a_claim_older_than_the_last_pause_is_rejected_and_a_newer_one_is_not() -> None:
    """By their epochs, whatever the status is by now."""
    verdicts = judge([claim(1, epoch=1), claim(2, epoch=2), claim(3, epoch=3)], books(pause_epoch=2))

    assert ["PAUSED", None, None] == reasons(verdicts)


@pytest.mark.parametrize(("reason", "word"), [(None, "issued"), ("PAUSED", "PAUSED")])
def test_a_claim_the_database_knows_keeps_its_end(reason: str | None, word: str) -> None:
    """Nothing is written again, and no room is taken, even in a paused template without room."""
    known = books(room=0, status="paused", answered={("ann", "r1"): (1, reason)})

    (verdict,) = judge([claim(1)], known)

    assert (reason, False, f"1 {word}", 0) == (verdict.reason, verdict.new, verdict.answer, known.room)


def test_another_claim_of_an_answered_request_is_its_duplicate() -> None:
    """It is written down once, and the request keeps the first answer."""
    known = books(answered={("ann", "r1"): (1, None), ("ann", "r2"): (2, "PAUSED")}, duplicates={12})

    verdicts = judge([claim(11, request="r1"), claim(12, request="r2")], known)

    assert ["DUPLICATE", "DUPLICATE"] == reasons(verdicts)
    assert [(True, "1 issued"), (False, "2 PAUSED")] == [(verdict.new, verdict.answer) for verdict in verdicts]


def test_a_request_twice_in_one_batch_is_answered_by_its_first_claim() -> None:
    """Also when that is rejected."""
    issued = judge([claim(1, request="r"), claim(2, request="r")], books())
    rejected = judge([claim(1, request="r"), claim(2, request="r")], books(room=0))

    assert [(None, "1 issued"), ("DUPLICATE", "1 issued")] == [(v.reason, v.answer) for v in issued]
    assert [("SOLD_OUT", "1 SOLD_OUT"), ("DUPLICATE", "1 SOLD_OUT")] == [(v.reason, v.answer) for v in rejected]


def test_a_request_id_belongs_to_its_user() -> None:
    """The same id of another user is another request."""
    assert [None, None] == reasons(judge([claim(1, "ann", "r"), claim(2, "bob", "r")], books()))


def test_a_number_that_is_taken_is_replaced_by_the_users_next() -> None:
    """Redis had lost its memory and counts from one again."""
    known = books(taken_seqs={("ann", 1), ("ann", 2)}, last_seq={"ann": 5})

    verdicts = judge([claim(11, claim_seq=1), claim(12, claim_seq=2), claim(13, claim_seq=3)], known)

    assert [6, 7, 3] == [verdict.claim_seq for verdict in verdicts]


def test_a_claim_that_cannot_be_stored_ends_as_invalid() -> None:
    """Its request is answered so."""
    verdict = reject_unstorable(claim(41))

    assert ("INVALID", True, "41 INVALID") == (verdict.reason, verdict.new, verdict.answer)


def drew(claim_id: int, value: int | None) -> PendingClaim:
    """A claim that has drawn a face value."""
    return claim(claim_id, f"u{claim_id}", face_value=value)


def test_what_claims_drew_is_theirs_as_often_as_the_pool_has_it() -> None:
    """The next one that drew the same, because Redis was rewound, is drawn another; so is one that drew none."""
    known = books(values_left=Counter({900: 2}))

    verdicts = judge([drew(1, 900), drew(2, 900), drew(3, 900), drew(4, 700), drew(5, None)], known)

    assert [False, False, True, True, True] == [verdict.redraw for verdict in verdicts]
    assert [None] * 5 == reasons(verdicts)


def test_a_rejected_claim_takes_no_value_from_those_behind_it() -> None:
    """Nor is it drawn another."""
    known = books(values_left=Counter({900: 1}), pause_epoch=1)

    verdicts = judge([drew(1, 900), claim(2, "bob", epoch=1, face_value=900)], known)

    assert ["PAUSED", None] == reasons(verdicts)
    assert [False, False] == [verdict.redraw for verdict in verdicts]


def test_without_a_pool_nothing_is_redrawn() -> None:
    """Whatever the entry says."""
    (verdict,) = judge([drew(1, 900)], books())

    assert (None, False) == (verdict.reason, verdict.redraw)


USERS = st.sampled_from(["ann", "bob", "cat"])


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[PendingClaim], Books]:
    """Claims with few users, requests and numbers, so that they meet; and books that know some of them."""
    claims = [
        claim(
            number,
            draw(USERS),
            draw(st.sampled_from(["r1", "r2", "r3"])),
            claim_seq=draw(st.integers(1, 4)),
            day=draw(st.sampled_from(["20000", "20001"])),
            epoch=draw(st.integers(0, 2)),
        )
        for number in range(1, draw(st.integers(1, 12)) + 1)
    ]
    limits = st.one_of(st.none(), st.integers(1, 3))
    known = books(
        room=draw(st.integers(-1, 6)),
        status=draw(st.sampled_from(["active", "active", "paused", "offline"])),
        pause_epoch=draw(st.integers(0, 2)),
        user_limit=draw(limits),
        daily_limit=draw(limits),
    )
    for number in range(draw(st.integers(0, 4))):
        user, request = draw(USERS), draw(st.sampled_from(["r1", "r2", "r3"]))
        reason = draw(st.sampled_from([None, "PAUSED"]))
        known.answered[user, request] = (draw(st.integers(1, 12)) if number % 2 else 100 + number, reason)
        known.taken_seqs.add((user, number + 1))
        known.last_seq[user] = max(number + 1, known.last_seq.get(user, 0))
    return claims, known


@settings(max_examples=300, derandomize=True, deadline=None)
@given(batches())
def test_whatever_comes_the_verdicts_keep_every_rule(batch: tuple[list[PendingClaim], Books]) -> None:
    """Room, limits, one effect a request, numbers used once; each claim has its verdict, in order."""
    claims, known = batch
    room, taken, limit, daily_limit = max(0, known.room), set(known.taken_seqs), known.user_limit, known.daily_limit
    answered = dict(known.answered)

    verdicts = judge(claims, known)

    new = [verdict for verdict in verdicts if verdict.new and verdict.reason is None]
    seqs = [(verdict.claim.user_id, verdict.claim_seq) for verdict in new]
    by_user = Counter(verdict.claim.user_id for verdict in new)
    by_day = Counter((verdict.claim.user_id, verdict.claim.day) for verdict in new)
    requests = [(verdict.claim.user_id, verdict.claim.request_id) for verdict in new]
    assert claims == [verdict.claim for verdict in verdicts]
    assert len(new) <= room
    assert limit is None or all(count <= limit for count in by_user.values())
    assert daily_limit is None or all(count <= daily_limit for count in by_day.values())
    assert len(requests) == len(set(requests)) and not set(requests) & answered.keys()
    assert len(seqs) == len(set(seqs)) and not set(seqs) & taken
    answers = {(verdict.claim.user_id, verdict.claim.request_id): set[str]() for verdict in verdicts}
    for verdict in verdicts:
        answers[verdict.claim.user_id, verdict.claim.request_id].add(verdict.answer)
    assert {1} == {len(told) for told in answers.values()}
