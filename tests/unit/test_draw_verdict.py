"""Draws judged against the books, when Redis let through what it should not."""

from __future__ import annotations

from collections import Counter
from typing import Any

from coupon_workers.lottery.draw_verdict import Answered, Books, judge
from coupon_workers.lottery.pending_draw import PendingDraw


def books(**changed: Any) -> Books:
    """Of a lottery without limits that has two of its first prize left."""
    fields: dict[str, Any] = {"is_over": False, "user_limit": None, "daily_limit": None, "left": Counter({1: 2})}
    return Books(**(fields | changed))


def pending(draw_id: int, user: str = "ann", request: str = "", prize_no: int = 1, day: str = "7") -> PendingDraw:
    """A draw."""
    return PendingDraw(f"{draw_id}-0", draw_id, user, request or f"r{draw_id}", prize_no, 1_000, day)


def test_what_is_left_is_won_and_what_is_more_is_not() -> None:
    """A draw that wins nothing takes nothing."""
    verdicts = judge([pending(1), pending(2, prize_no=0), pending(3), pending(4)], books())

    assert [None, None, None, "SOLD_OUT"] == [verdict.reason for verdict in verdicts]
    assert [True, False, True, False] == [verdict.wins for verdict in verdicts]


def test_limits_hold_and_rejected_draws_do_not_count() -> None:
    """In all, and on each day."""
    held = books(user_limit=3, daily_limit=2, left=Counter({1: 9}), drawn=Counter(ann=1))

    verdicts = judge([pending(1), pending(2), pending(3, "bob"), pending(4, "bob"), pending(5, "bob")], held)
    late = judge([pending(6, "bob", day="8"), pending(7)], held)

    assert [None, None, None, None, "DAILY_LIMIT_REACHED"] == [verdict.reason for verdict in verdicts]
    assert [None, "LIMIT_REACHED"] == [verdict.reason for verdict in late]


def test_a_request_is_answered_by_its_first_draw() -> None:
    """Another draw of it is a duplicate; the same one again is not new."""
    held = books(answered={("ann", "r1"): Answered(1, 1, None)})

    again, other, twice = judge([pending(1), pending(2, request="r1"), pending(2, request="r1")], held)

    assert (None, False, "1 1 settled") == (again.reason, again.new, again.answer)
    assert ("DUPLICATE", True, "1 1 settled") == (other.reason, other.new, other.answer)
    assert ("DUPLICATE", False) == (twice.reason, twice.new)


def test_after_the_end_nothing_is_won() -> None:
    """What was left has gone back."""
    [verdict] = judge([pending(1)], books(is_over=True))

    assert ("ENDED", "1 1 ENDED") == (verdict.reason, verdict.answer)
