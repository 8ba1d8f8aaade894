"""Judging draws against the database's books. Pure: the books come in, verdicts go out (DESIGN 3, invariants 1-4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coupon_workers.lottery.odds import NONE
from coupon_workers.lottery.outcome import DrawRejection
from coupon_workers.lottery.pending_draw import PendingDraw

Request = tuple[str, str]


class Answered(NamedTuple):
    """The draw that answered a request first, what it won, and why it counts for nothing if it does."""

    draw_id: int
    prize_no: int
    reason: str | None

    @property
    def text(self) -> str:
        """As the gate keeps it."""
        return f"{self.draw_id} {self.prize_no} {self.reason or 'settled'}"


@dataclass(slots=True)
class Books:
    """What the database knows of a lottery and of the users and requests of a batch; the numbers move on as verdicts
    are given. ``left`` is by prize; ``duplicates`` are draws of answered requests that are written down already."""

    is_over: bool
    user_limit: int | None
    daily_limit: int | None
    left: Counter[int]
    drawn: Counter[str] = field(default_factory=Counter)
    drawn_on_day: Counter[tuple[str, str]] = field(default_factory=Counter)
    answered: dict[Request, Answered] = field(default_factory=dict)
    duplicates: set[int] = field(default_factory=set)


class Verdict(NamedTuple):
    """How a draw ends. ``new``: this is to be written now. ``answer``: what its request is answered with."""

    draw: PendingDraw
    reason: str | None
    new: bool
    answer: str

    @property
    def wins(self) -> bool:
        """Whether it takes a prize."""
        return self.reason is None and self.draw.prize_no != NONE


def judge(draws: Sequence[PendingDraw], books: Books) -> list[Verdict]:
    """A verdict for each draw, in order; earlier ones take prizes and allowance from later ones. A draw that the
    database knows already gets its old verdict with ``new=False``."""
    return [_judge_one(draw, books) for draw in draws]


def _judge_one(draw: PendingDraw, books: Books) -> Verdict:
    request = (draw.user_id, draw.request_id)
    before = books.answered.get(request)
    if before is not None:
        if before.draw_id == draw.draw_id:
            return Verdict(draw, before.reason, new=False, answer=before.text)
        new = draw.draw_id not in books.duplicates
        books.duplicates.add(draw.draw_id)
        return Verdict(draw, DrawRejection.DUPLICATE, new=new, answer=before.text)
    reason = _refusal(draw, books)
    books.answered[request] = answer = Answered(draw.draw_id, draw.prize_no, reason)
    if reason is None:
        books.left[draw.prize_no] -= 1
        books.drawn[draw.user_id] += 1
        books.drawn_on_day[draw.user_id, draw.day] += 1
    return Verdict(draw, reason, new=True, answer=answer.text)


def _refusal(draw: PendingDraw, books: Books) -> DrawRejection | None:
    if books.is_over:
        return DrawRejection.ENDED
    if books.user_limit is not None and books.drawn[draw.user_id] >= books.user_limit:
        return DrawRejection.LIMIT_REACHED
    if books.daily_limit is not None and books.drawn_on_day[draw.user_id, draw.day] >= books.daily_limit:
        return DrawRejection.DAILY_LIMIT_REACHED
    if draw.prize_no != NONE and books.left[draw.prize_no] <= 0:
        return DrawRejection.SOLD_OUT
    return None
