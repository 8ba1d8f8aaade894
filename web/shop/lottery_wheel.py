"""The wheels of the shop: lotteries to draw from, a draw at the gate, and what is said of it."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import uuid4

from flask import request
from markupsafe import Markup

from coupon_workers.errors import InvalidInput
from coupon_workers.lottery.draw_gate import DrawDecision, DrawRequest
from coupon_workers.lottery.draws_left import DrawsLeft, draws_left
from coupon_workers.lottery.lottery import LotteryStatus
from coupon_workers.lottery.lottery_reading import LotteryAnswer, read_one, read_page
from coupon_workers.lottery.odds import NONE, WEIGHTS
from coupon_workers.lottery.outcome import DrawOutcome
from web.console.language import N_, gettext
from web.console.show import number
from web.console.word import word
from web.context import services
from web.draw_front import draw
from web.path_id import path_id
from web.shop.visitor import user
from web.wheel import place_of, wheel

SHOWN = 3
"""Wheels on the page."""
LOOKED_AT = 20
"""The newest lotteries, among which those that run are looked for."""

_SHOWN_WHILE = {LotteryStatus.SCHEDULED, LotteryStatus.ACTIVE, LotteryStatus.PAUSED}

_REFUSED = {
    DrawOutcome.LOTTERY_NOT_FOUND: N_("There is no such wheel."),
    DrawOutcome.NOT_WARMED: N_("The wheel is being made ready. Try again in a moment."),
    DrawOutcome.RATE_LIMITED: N_("Too fast. Try again in a moment."),
    DrawOutcome.ENDED: N_("The wheel has ended."),
    DrawOutcome.NOT_STARTED: N_("The wheel has not started yet."),
    DrawOutcome.PAUSED: N_("The wheel stands still for now."),
    DrawOutcome.LIMIT_REACHED: N_("You have drawn as often as allowed."),
    DrawOutcome.DAILY_LIMIT_REACHED: N_("You have drawn as often as allowed today."),
    DrawOutcome.BACKLOG_FULL: N_("Too many draw at this moment. Try again in a moment."),
}


class Wheel(NamedTuple):
    """A lottery as a visitor sees it. ``rest``: draws in a million that never win; ``request_id``: the next draw's;
    ``left``: how often he may still draw, in words."""

    lottery: LotteryAnswer
    picture: Markup
    rest: int
    request_id: str
    left: str


class Told(NamedTuple):
    """What became of a draw. ``stop``: the part on which the wheel stops; None for a refusal, which turns nothing.
    ``waits``: its coupon is not in the wallet yet. ``left`` as of ``Wheel``."""

    lottery_id: str
    request_id: str
    text: str
    tone: str
    stop: int | None = None
    waits: bool = False
    left: str = ""


def wheels() -> list[Wheel]:
    """The newest that run, will run, or stand still."""
    found = [each for each in read_page(services(), limit=LOOKED_AT) if each.status in _SHOWN_WHILE]
    shown = found[:SHOWN]
    left = [_words_of(each) for each in draws_left(services(), shown, user())]
    return [
        Wheel(each, wheel(len(each.prizes)), _rest(each), uuid4().hex, words)
        for each, words in zip(shown, left, strict=True)
    ]


def _words_of(left: DrawsLeft | None) -> str:
    if left is None:
        return ""
    words = gettext("Draws left today: %s") if left.today else gettext("Draws left: %s")
    return words % number(left.draws)


def _rest(lottery: LotteryAnswer) -> int:
    return WEIGHTS - sum(prize.weight for prize in lottery.prizes)


def draw_for_visitor() -> Told:
    """Draw what this request's form asks for. Its request's id makes it one draw: sent again it is told the same."""
    lottery_id, request_id = request.form.get("lottery_id", ""), request.form.get("request_id", "")
    if not (request_id.isascii() and request_id.isalnum() and len(request_id) <= 64):
        raise InvalidInput([("", gettext("This page is from an earlier session. Load it again."))])
    decision = draw(DrawRequest(path_id(lottery_id, "LOTTERY_NOT_FOUND"), user(), request_id))
    if decision.outcome is DrawOutcome.LOTTERY_NOT_FOUND:
        return Told(lottery_id, request_id, gettext(_REFUSED[decision.outcome]), "bad")
    lottery = read_one(services(), int(lottery_id))
    left = _words_of(draws_left(services(), [lottery], user())[0])
    if (refused := _REFUSED.get(decision.outcome)) is not None:
        return Told(lottery_id, request_id, gettext(refused), "bad", left=left)
    return Told(lottery_id, request_id, **_drawn(lottery, decision), left=left)


def _drawn(lottery: LotteryAnswer, decision: DrawDecision) -> dict[str, Any]:
    stop = place_of(decision.prize_no, len(lottery.prizes))
    if decision.state not in ("queued", "settled"):
        text = f"{gettext('It was not to be:')} {word(decision.state)}"
        return {"text": text, "tone": "bad", "stop": stop}
    if decision.prize_no == NONE:
        return {"text": gettext("Nothing this time."), "tone": "plain", "stop": stop}
    if decision.template_id is None:
        return {"text": gettext("You have drawn: %s") % decision.prize_name, "tone": "plain", "stop": stop}
    if decision.state == "queued":
        text = gettext("You have won: %s. The coupon is on its way.") % decision.prize_name
        return {"text": text, "tone": "good", "stop": stop, "waits": True}
    text = gettext("You have won: %s. The coupon is in your wallet.") % decision.prize_name
    return {"text": text, "tone": "good", "stop": stop}
