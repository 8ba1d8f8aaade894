"""How lotteries stand, prize by prize, and who has drawn what (API.md, lottery)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import text

from coupon_workers.lottery.lottery import LotteryStatus, Row, read_lottery, read_prizes, status_now
from coupon_workers.lottery.odds import WEIGHTS
from coupon_workers.lottery.outcome import DrawRejection
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.newest_page import newest
from coupon_workers.runtime.services import Services
from coupon_workers.schema import Lottery


class PrizeAnswer(BaseModel):
    """A prize, as far as draws are settled."""

    prize_no: int
    name: str
    weight: int = Field(description="draws in a million that win it, for as long as it is there")
    template_id: str | None
    stock: int
    drawn: int
    left: int = Field(description="what can still be won; when the lottery has ended, none")
    issued: int = Field(description="coupons that were won")
    expected_odds: float
    observed_odds: float | None = Field(description="of all settled draws; null before the first")


class LotteryAnswer(BaseModel):
    """A lottery at this moment."""

    lottery_id: str
    name: str
    status: LotteryStatus
    start: str
    end: str
    timezone: str = Field(description="of the daily limit")
    per_user_limit: int | None
    per_user_daily_limit: int | None
    draws: int = Field(description="settled")
    none: int = Field(description="of them, those that won nothing")
    rejected: int = Field(description="draws that count for nothing: Redis had lost its memory")
    prizes: list[PrizeAnswer]
    version: int = Field(description="rises with each change; a change names the one that it was made on")
    created_by: str
    created_at: str
    approved_by: str | None
    ended_by: str | None
    ended_at: str | None


class SettledDraw(BaseModel):
    """A draw, as it was settled."""

    draw_id: str
    lottery_id: str
    user_id: str
    request_id: str
    prize_no: int = Field(description="0: none")
    prize: str
    coupon_no: str | None
    reason: DrawRejection | None = Field(description="why it counts for nothing; null: it counts")
    drawn_at: str
    settled_at: str


_DRAWS = """
    SELECT d.*, coalesce(p.name, 'none') AS prize
      FROM draw d LEFT JOIN prize p USING (lottery_id, prize_no)
     WHERE {} ORDER BY d.draw_id DESC LIMIT :limit
"""


def read_one(services: Services, lottery_id: int) -> LotteryAnswer:
    """The lottery. Raises ``NotFound`` ``LOTTERY_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        return _answer(read_lottery(connection, lottery_id), read_prizes(connection, lottery_id), services.clock())


def read_page(services: Services, *, limit: int, before: int | None = None) -> list[LotteryAnswer]:
    """The newest ``limit`` lotteries with identities below ``before``. Raises ``StoreUnavailable``."""
    wanted = newest(Lottery.lottery_id, limit=limit, before=before)
    with transaction(services.engine) as connection:
        lotteries = [dict(row) for row in connection.execute(wanted).mappings()]
        prizes = read_prizes(connection, *(lottery["lottery_id"] for lottery in lotteries))
    now = services.clock()
    return [_answer(each, [p for p in prizes if p["lottery_id"] == each["lottery_id"]], now) for each in lotteries]


def read_draws(
    services: Services, lottery_id: int, *, limit: int, before: int | None = None, user_id: str | None = None
) -> list[SettledDraw]:
    """The newest ``limit`` settled draws with numbers below ``before``; of a user if one is asked for.

    Raises ``NotFound`` ``LOTTERY_NOT_FOUND``, ``StoreUnavailable``.
    """
    conditions = ["d.lottery_id = :lottery_id"]
    conditions += [] if before is None else ["d.draw_id < :before"]
    conditions += [] if user_id is None else ["d.user_id = :user_id"]
    named = {"lottery_id": lottery_id, "before": before, "user_id": user_id, "limit": limit}
    with transaction(services.engine) as connection:
        read_lottery(connection, lottery_id)
        found = connection.execute(text(_DRAWS.format(" AND ".join(conditions))), named).mappings().all()
    return [_draw(row) for row in found]


def _draw(row: Any) -> SettledDraw:
    return SettledDraw(
        draw_id=str(row["draw_id"]),
        lottery_id=str(row["lottery_id"]),
        user_id=row["user_id"],
        request_id=row["request_id"],
        prize_no=row["prize_no"],
        prize=row["prize"],
        coupon_no=None if row["coupon_id"] is None else str(row["coupon_id"]),
        reason=row["reason"],
        drawn_at=rfc3339(row["drawn_at"]),
        settled_at=rfc3339(row["settled_at"]),
    )


def _answer(lottery: Row, prizes: Sequence[Row], now: datetime) -> LotteryAnswer:
    return LotteryAnswer(
        lottery_id=str(lottery["lottery_id"]),
        name=lottery["name"],
        status=status_now(lottery, now),
        start=rfc3339(lottery["start_at"]),
        end=rfc3339(lottery["end_at"]),
        timezone=lottery["timezone"],
        per_user_limit=lottery["per_user_limit"],
        per_user_daily_limit=lottery["per_user_daily_limit"],
        draws=lottery["draw_count"],
        none=lottery["none_count"],
        rejected=lottery["rejected_count"],
        prizes=[_prize(prize, lottery["draw_count"]) for prize in prizes],
        version=lottery["version"],
        created_by=lottery["created_by"],
        created_at=rfc3339(lottery["created_at"]),
        approved_by=lottery["approved_by"],
        ended_by=lottery["ended_by"],
        ended_at=rfc3339(lottery["ended_at"]) if lottery["ended_at"] else None,
    )


def _prize(prize: Row, draws: int) -> PrizeAnswer:
    return PrizeAnswer(
        prize_no=prize["prize_no"],
        name=prize["name"],
        weight=prize["weight"],
        template_id=None if prize["template_id"] is None else str(prize["template_id"]),
        stock=prize["stock"],
        drawn=prize["drawn_count"],
        left=prize["left_quantity"],
        issued=0 if prize["template_id"] is None else prize["drawn_count"],
        expected_odds=prize["weight"] / WEIGHTS,
        observed_odds=round(prize["drawn_count"] / draws, 6) if draws else None,
    )
