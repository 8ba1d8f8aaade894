"""The gate of a lottery: one script in Redis decides a draw, in one round trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from coupon_workers.claiming.pending import BELL_TTL_MS
from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.odds import NONE, draw_number
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.lua_script import Value, lua_script
from coupon_workers.runtime.services import Services

_OUTCOMES = {outcome.value.encode(): outcome for outcome in DrawOutcome}


class DrawRequest(NamedTuple):
    """One draw. A request belongs to its user and lottery."""

    lottery_id: int
    user_id: str
    request_id: str


class DrawDecision(NamedTuple):
    """The gate's answer. ``draw_id``, ``prize_no`` (0: none), ``prize_name`` and ``template_id`` (None: no coupon) are
    set when drawn or replayed; ``state`` is queued, settled, or why a draw counts for nothing. ``start_ms`` when not
    started, ``wait_ms`` when rate limited. ``ring``: the doorbell is to be sent."""

    outcome: DrawOutcome
    draw_id: int = 0
    prize_no: int = NONE
    prize_name: str = ""
    template_id: int | None = None
    state: str = "queued"
    start_ms: int = 0
    wait_ms: int = 0
    ring: bool = False


def draw_keys(keys: LotteryKeys) -> list[str]:
    """KEYS in the order of the script's header."""
    return [
        keys.meta,
        keys.generation,
        keys.stock,
        keys.takers,
        keys.requests,
        keys.pending,
        keys.bell,
        keys.day_prefix,
        keys.rate_prefix,
    ]


def decide(
    services: Services, request: DrawRequest, *, now_ms: int = 0, number: Callable[[], int] = draw_number
) -> DrawDecision:
    """Decide one draw; ``now_ms`` 0 means Redis's own clock.

    Raises ``StoreUnavailable`` when Redis did not answer twice: the draw may have been accepted, and the same request
    asked again will be told.
    """
    draw_id = services.next_id(0)
    settings = services.settings
    tail = (number(), settings.backlog_limit, settings.claim_rate, BELL_TTL_MS)
    args: list[Value] = [draw_id, request.user_id, request.request_id, now_ms, *tail]
    keys = draw_keys(LotteryKeys(request.lottery_id))
    try:
        answer, heard_first = lua_script("draw")(services.redis, keys, args), True
    except StoreUnavailable:
        # Unknown is not refused: the same question again, under the same number, is answered once and for all.
        answer, heard_first = lua_script("draw")(services.redis, keys, args), False
    crash_point("lottery.after_script")
    return _decision(answer, draw_id, heard_first)


def _decision(answer: list[Any], draw_id: int, heard_first: bool) -> DrawDecision:
    outcome = _OUTCOMES[answer[0]]
    if outcome is DrawOutcome.DRAWN:
        return DrawDecision(outcome, draw_id, answer[1], *_prize(answer[2]), ring=answer[3] == 1)
    if outcome is DrawOutcome.REPLAYED:
        first, state = int(answer[1]), answer[3].decode()
        if first == draw_id and not heard_first:
            # Our own first question was carried out and only its answer was lost; nobody may have rung.
            return DrawDecision(DrawOutcome.DRAWN, draw_id, answer[2], *_prize(answer[4]), ring=True)
        return DrawDecision(outcome, first, answer[2], *_prize(answer[4]), state=state)
    if outcome is DrawOutcome.NOT_STARTED:
        return DrawDecision(outcome, start_ms=answer[1])
    if outcome is DrawOutcome.RATE_LIMITED:
        return DrawDecision(outcome, wait_ms=answer[1])
    return DrawDecision(outcome)


def _prize(told: bytes) -> tuple[str, int | None]:
    """The name and the template out of "<template id> <name>"."""
    template_id, _, name = told.decode().partition(" ")
    return name, int(template_id) if template_id else None
