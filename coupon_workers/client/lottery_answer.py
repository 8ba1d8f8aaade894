"""Lotteries and draws, as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class PrizeAnswer(TypedDict):
    """A prize, as far as draws are settled."""

    prize_no: int
    name: str
    weight: int
    template_id: str | None
    stock: int
    drawn: int
    left: int
    issued: int
    expected_odds: float
    observed_odds: float | None


class LotteryAnswer(TypedDict):
    """A lottery at this moment."""

    lottery_id: str
    name: str
    status: Literal["pending_approval", "scheduled", "active", "paused", "ending", "ended"]
    start: str
    end: str
    timezone: str
    per_user_limit: int | None
    per_user_daily_limit: int | None
    draws: int
    none: int
    rejected: int
    prizes: list[PrizeAnswer]
    version: int
    created_by: str
    created_at: str
    approved_by: str | None
    ended_by: str | None
    ended_at: str | None


class DrawAnswer(TypedDict):
    """What was drawn. A coupon can be seen in the wallet once the draw is `settled`, within a second as a rule."""

    draw_id: str
    lottery_id: str
    user_id: str
    prize_no: int
    prize: str
    coupon_no: str | None
    status: Literal["queued", "settled", "rejected"]
    reason: NotRequired[str | None]
    replayed: bool


class SettledDraw(TypedDict):
    """A draw, as it was settled."""

    draw_id: str
    lottery_id: str
    user_id: str
    request_id: str
    prize_no: int
    prize: str
    coupon_no: str | None
    reason: Literal["DUPLICATE", "ENDED", "LIMIT_REACHED", "DAILY_LIMIT_REACHED", "SOLD_OUT"] | None
    drawn_at: str
    settled_at: str
