"""Lotteries over HTTP (API.md, lottery): made, watched, stopped by operators; drawn from by storefronts."""

from __future__ import annotations

import math
from typing import Any

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from coupon_workers.lottery import lottery_control as control
from coupon_workers.lottery import lottery_reading as reading
from coupon_workers.lottery.draw_gate import DrawRequest
from coupon_workers.lottery.lottery_change import change_lottery
from coupon_workers.lottery.lottery_reading import LotteryAnswer, SettledDraw
from coupon_workers.lottery.new_lottery import create_lottery
from coupon_workers.orders.order import UserId
from web.auth import require
from web.context import principal, services
from web.draw_answer import REFUSALS, draw_body, evidence_of
from web.draw_front import draw
from web.idempotent import idempotent, subject_id
from web.lotteries_model import DrawAnswer, DrawBody, LotteryBody, LotteryPatch
from web.page import PageQuery, page
from web.path_id import path_id
from web.problem import problem
from web.problem_code import refuses

api = APIBlueprint("lotteries", __name__, abp_tags=[Tag(name="Lotteries", description="Prizes drawn at odds")])

Json = dict[str, Any]


class LotteryPath(BaseModel):
    """The lottery in the path."""

    lottery_id: str

    @property
    def number(self) -> int:
        """The identity. Raises ``NotFound`` for a text that is none."""
        return path_id(self.lottery_id, "LOTTERY_NOT_FOUND")


class LotteryPage(BaseModel):
    """Lotteries, newest first."""

    items: list[LotteryAnswer]
    next_cursor: str | None


class DrawQuery(PageQuery):
    """Which draws, and which page of them."""

    user_id: UserId | None = Field(None, description="only those of this user")


class DrawPage(BaseModel):
    """Settled draws, newest first."""

    items: list[SettledDraw]
    next_cursor: str | None


def _json(answer: BaseModel) -> Json:
    return answer.model_dump(mode="json")


@api.post("/v1/lotteries", summary="Make a lottery", responses={201: LotteryAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "NOT_ENOUGH_STOCK", "TEMPLATE_NOT_ACTIVE", "TYPE_NOT_OFFERED")
@idempotent
def post_lottery(body: LotteryBody) -> tuple[Json, int]:
    """A unit of stock is set aside at once for each coupon to be won. 422 where the weights do not sum to 1,000,000,
    or the lottery does not lie within the claim time of its templates. It waits for `/approve` by another key where its
    coupons may cost more than the budget. 409 `NOT_ENOUGH_STOCK` with `available`, `TEMPLATE_NOT_ACTIVE` with
    `current_status`, `TYPE_NOT_OFFERED`, each with the `template_id`.
    """
    lottery = body.asked(subject_id())
    create_lottery(services(), lottery, principal().key_id)
    return _json(reading.read_one(services(), lottery.lottery_id)), 201


@api.get("/v1/lotteries", summary="List lotteries", responses={200: LotteryPage})
@require("admin")
def list_lotteries(query: PageQuery) -> Any:
    """Newest first."""
    lotteries = reading.read_page(services(), limit=query.limit + 1, before=query.before)
    return page(lotteries, query.limit, _json, lambda lottery: [int(lottery.lottery_id)])


@api.get("/v1/lotteries/<lottery_id>", summary="How a lottery stands", responses={200: LotteryAnswer})
@require("admin")
@refuses("LOTTERY_NOT_FOUND")
def get_lottery(path: LotteryPath) -> Json:
    """Prize by prize: drawn, left, issued, and the odds as they are meant and as they came."""
    return _json(reading.read_one(services(), path.number))


@api.patch("/v1/lotteries/<lottery_id>", summary="Change a lottery", responses={200: LotteryAnswer})
@require("admin")
@refuses(
    "LOTTERY_NOT_FOUND",
    "INVALID_STATUS",
    "LOTTERY_CHANGED",
    "LOTTERY_BUSY",
    "BELOW_DRAWN",
    "ABOVE_BUDGET",
    "NOT_ENOUGH_STOCK",
    "TEMPLATE_NOT_ACTIVE",
)
@idempotent
def patch_lottery(path: LotteryPath, body: LotteryPatch) -> Json:
    """Name, weights and stock, while nobody draws: one that runs is paused first.

    409 `LOTTERY_CHANGED` with the present `version` where another was read; `BELOW_DRAWN` with `prize_no` and `drawn`;
    `ABOVE_BUDGET` where more coupons would need a second person.
    """
    change_lottery(services(), path.number, body.asked())
    return _json(reading.read_one(services(), path.number))


@api.post("/v1/lotteries/<lottery_id>/approve", summary="Approve a lottery", responses={200: LotteryAnswer})
@require("admin")
@refuses("LOTTERY_NOT_FOUND", "INVALID_STATUS", "OWN_LOTTERY")
@idempotent
def approve_lottery(path: LotteryPath) -> Json:
    """Open a lottery that waits for it. 409 `OWN_LOTTERY` for the key that made it."""
    control.approve_lottery(services(), path.number, principal().key_id)
    return _json(reading.read_one(services(), path.number))


@api.post("/v1/lotteries/<lottery_id>/pause", summary="Pause a lottery", responses={200: LotteryAnswer})
@require("admin")
@refuses("LOTTERY_NOT_FOUND", "INVALID_STATUS")
@idempotent
def pause_lottery(path: LotteryPath) -> Json:
    """Nobody draws until it is resumed; what was drawn stays, and its prizes keep their stock."""
    control.pause_lottery(services(), path.number)
    return _json(reading.read_one(services(), path.number))


@api.post("/v1/lotteries/<lottery_id>/resume", summary="Resume a lottery", responses={200: LotteryAnswer})
@require("admin")
@refuses("LOTTERY_NOT_FOUND", "INVALID_STATUS")
@idempotent
def resume_lottery(path: LotteryPath) -> Json:
    """Draws are accepted again."""
    control.resume_lottery(services(), path.number)
    return _json(reading.read_one(services(), path.number))


@api.post("/v1/lotteries/<lottery_id>/end", summary="End a lottery", responses={200: LotteryAnswer})
@require("admin")
@refuses("LOTTERY_NOT_FOUND")
@idempotent
def end_lottery(path: LotteryPath) -> Json:
    """For good. Draws that wait are settled, then what is left of its stock goes back: `ending`, then `ended`."""
    control.end_lottery(services(), path.number, principal().key_id)
    return _json(reading.read_one(services(), path.number))


@api.get("/v1/lotteries/<lottery_id>/draws", summary="List draws", responses={200: DrawPage})
@require("admin")
@refuses("LOTTERY_NOT_FOUND")
def list_draws(path: LotteryPath, query: DrawQuery) -> Any:
    """Settled ones, newest first."""
    draws = reading.read_draws(
        services(), path.number, limit=query.limit + 1, before=query.before, user_id=query.user_id
    )
    return page(draws, query.limit, _json, lambda draw: [int(draw.draw_id)])


@api.post("/v1/lotteries/<lottery_id>/draws", summary="Draw", responses={200: DrawAnswer})
@require("storefront")
@refuses(
    "LOTTERY_NOT_FOUND",
    "NOT_STARTED",
    "ENDED",
    "PAUSED",
    "LIMIT_REACHED",
    "DAILY_LIMIT_REACHED",
    "RATE_LIMITED",
    "NOT_WARMED",
    "BACKLOG_FULL",
    "NO_IDENTITY",
)
def post_draw(path: LotteryPath, body: DrawBody) -> Any:
    """One round trip to Redis decides. The same `request_id` of this user has the same prize, for good; a prize that is
    used up falls to `none`."""
    asked = DrawRequest(path.number, body.user_id, body.request_id)
    decision = draw(asked)
    refusal = REFUSALS.get(decision.outcome)
    if refusal is None:
        return draw_body(decision, asked)
    wait_s = max(1, math.ceil(decision.wait_ms / 1000))
    headers = {"Retry-After": str(wait_s)} if refusal.status in (429, 503) else None
    evidence = evidence_of(decision)
    answer: Response = problem(
        refusal.status, decision.outcome.value, refusal.detail, headers=headers, evidence=evidence
    )
    return answer
