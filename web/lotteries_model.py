"""Lotteries and draws as they are asked for and answered over HTTP (API.md, lottery)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.lottery.lottery_change import LotteryChange, PrizeChange
from coupon_workers.lottery.new_lottery import NewLottery, NewPrize
from coupon_workers.lottery.odds import WEIGHTS
from coupon_workers.orders.order import UserId
from coupon_workers.templates.field_type import Instant, Name, Quantity, Timezone
from web.batch_model import Identity
from web.codes_model import RequestId

MOST_PRIZES = 100
"""The script goes through them for each draw."""

Limit = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]


class PrizeBody(BaseModel):
    """A prize: a coupon of a template, or something that is not ours to give."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(examples=["20 off"])
    weight: Annotated[int, Field(strict=True, ge=0, le=WEIGHTS)] = Field(
        description="draws in a million that win it; those of all prizes sum to a million", examples=[10_000]
    )
    template_id: Identity | None = Field(None, description="null: no coupon")
    stock: Quantity = Field(description="when it is used up, its draws win nothing", examples=[100])


class LotteryBody(BaseModel):
    """A lottery: when, what, and how often a user may draw."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(examples=["Double Eleven wheel"])
    start: Instant
    end: Instant = Field(description="the first instant at which nobody draws any more")
    prizes: list[PrizeBody] = Field(min_length=1, max_length=MOST_PRIZES)
    per_user_limit: Limit | None = Field(None, description="draws of a user in all; null: no limit")
    per_user_daily_limit: Limit | None = Field(None, description="draws of a user and local day; null: no limit")
    timezone: Timezone = Field("Asia/Shanghai", description="of the daily limit")

    def asked(self, lottery_id: int) -> NewLottery:
        """The lottery under its identity."""
        prizes = tuple(NewPrize(each.name, each.weight, each.stock, each.template_id) for each in self.prizes)
        limits = (self.per_user_limit, self.per_user_daily_limit)
        return NewLottery(lottery_id, self.name, self.start, self.end, prizes, self.timezone, *limits)


class PrizeChangeBody(BaseModel):
    """A prize as it is to be; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    prize_no: Annotated[int, Field(strict=True, ge=1, le=MOST_PRIZES)]
    weight: Annotated[int, Field(strict=True, ge=0, le=WEIGHTS)] | None = None
    stock: Quantity | None = Field(None, description="not below what is drawn of it")


class LotteryPatch(BaseModel):
    """A change, as a whole or not at all; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    version: Annotated[int, Field(strict=True, ge=1)] = Field(description="of the lottery as it was read")
    name: Name | None = None
    prizes: list[PrizeChangeBody] = Field([], max_length=MOST_PRIZES)

    def asked(self) -> LotteryChange:
        """The change."""
        prizes = tuple(PrizeChange(each.prize_no, each.weight, each.stock) for each in self.prizes)
        return LotteryChange(self.version, self.name, prizes)


class DrawBody(BaseModel):
    """Who draws. The same request id is answered with the same prize."""

    model_config = ConfigDict(extra="forbid")

    user_id: UserId = Field(examples=["u-1001"])
    request_id: RequestId = Field(description="belongs to its user and lottery", examples=["spin-8f1c"])


class DrawAnswer(BaseModel):
    """What was drawn. A coupon can be seen in the wallet once the draw is ``settled``, within a second as a rule."""

    draw_id: str
    lottery_id: str
    user_id: str
    prize_no: int = Field(description="0: none")
    prize: str = Field(description="its name; `none` where nothing was won")
    coupon_no: str | None
    status: Literal["queued", "settled", "rejected"]
    reason: str | None = Field(None, description="why it was rejected; only then present")
    replayed: bool
