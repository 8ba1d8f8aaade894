"""One table from the outcome of a draw to HTTP (API.md, lottery)."""

from __future__ import annotations

from typing import Any

from coupon_workers.lottery.draw_gate import DrawDecision, DrawRequest
from coupon_workers.lottery.odds import NONE
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.clock import from_ms, rfc3339
from web.claim_answer import Refusal

REFUSALS = {
    DrawOutcome.LOTTERY_NOT_FOUND: Refusal(404, "there is no such lottery"),
    DrawOutcome.NOT_WARMED: Refusal(503, "the lottery is being made ready; ask again"),
    DrawOutcome.RATE_LIMITED: Refusal(429, "this user asks too often"),
    DrawOutcome.ENDED: Refusal(409, "the lottery has ended"),
    DrawOutcome.NOT_STARTED: Refusal(409, "the lottery has not started"),
    DrawOutcome.PAUSED: Refusal(409, "the lottery is paused"),
    DrawOutcome.LIMIT_REACHED: Refusal(409, "this user has drawn as often as allowed"),
    DrawOutcome.DAILY_LIMIT_REACHED: Refusal(409, "this user has drawn as often as allowed today"),
    DrawOutcome.BACKLOG_FULL: Refusal(503, "too many draws are queued; ask again"),
}

NO_PRIZE = "none"


def draw_body(decision: DrawDecision, request: DrawRequest) -> dict[str, Any]:
    """The body of an accepted or replayed draw."""
    rejected = decision.state not in ("queued", "settled")
    won = decision.prize_no != NONE and not rejected
    body: dict[str, Any] = {
        "draw_id": str(decision.draw_id),
        "lottery_id": str(request.lottery_id),
        "user_id": request.user_id,
        "prize_no": decision.prize_no if won else NONE,
        "prize": decision.prize_name if won else NO_PRIZE,
        "coupon_no": str(decision.draw_id) if won and decision.template_id is not None else None,
        "status": "rejected" if rejected else decision.state,
        "replayed": decision.outcome is DrawOutcome.REPLAYED,
    }
    return body | {"reason": decision.state} if rejected else body


def evidence_of(decision: DrawDecision) -> dict[str, Any]:
    """What a refusal says besides its code: when it starts, or how long to wait."""
    if decision.start_ms:
        return {"starts_at": rfc3339(from_ms(decision.start_ms))}
    return {"retry_after_ms": decision.wait_ms} if decision.wait_ms else {}
