"""One table from the gate's outcome to HTTP (API.md, Claims)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate import Decision
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.clock import from_ms, rfc3339


class Refusal(NamedTuple):
    """The status and the sentence of a refused claim. Its code is the outcome's own word."""

    status: int
    detail: str


REFUSALS = {
    ClaimOutcome.TEMPLATE_NOT_FOUND: Refusal(404, "there is no such template"),
    ClaimOutcome.NOT_WARMED: Refusal(503, "the template is being made ready; ask again"),
    ClaimOutcome.RATE_LIMITED: Refusal(429, "this user asks too often"),
    ClaimOutcome.NOT_STARTED: Refusal(409, "claiming has not started"),
    ClaimOutcome.ENDED: Refusal(409, "claiming has ended"),
    ClaimOutcome.PAUSED: Refusal(409, "claiming is paused"),
    ClaimOutcome.NOT_ELIGIBLE: Refusal(403, "the template is not for this channel"),
    ClaimOutcome.LIMIT_REACHED: Refusal(409, "this user has as many as allowed"),
    ClaimOutcome.DAILY_LIMIT_REACHED: Refusal(409, "this user has as many as allowed today"),
    ClaimOutcome.SOLD_OUT: Refusal(409, "nothing is left"),
    ClaimOutcome.BACKLOG_FULL: Refusal(503, "too many claims are queued; ask again"),
    ClaimOutcome.RISK_REJECTED: Refusal(403, "the claim looks like abuse"),
}


def status_of(decision: Decision) -> int:
    """The HTTP status of a decision."""
    if decision.outcome is ClaimOutcome.ACCEPTED:
        return 202
    return 200 if decision.outcome is ClaimOutcome.REPLAYED else REFUSALS[decision.outcome].status


def claim_body(decision: Decision, request: ClaimRequest) -> dict[str, Any]:
    """The body of an accepted or replayed claim."""
    replayed = decision.outcome is ClaimOutcome.REPLAYED
    body: dict[str, Any] = {
        "claim_id": str(decision.claim_id),
        "status": decision.state,
        "template_id": str(request.template_id),
        "user_id": request.user_id,
        "replayed": replayed,
    }
    if replayed and decision.state not in ("queued", "issued"):
        body["status"] = "rejected"
        body["reason"] = decision.state
    return body


def evidence_of(decision: Decision) -> dict[str, Any]:
    """What a refusal says besides its code: when it starts, how long to wait, or which rule refused it."""
    if decision.start_ms:
        return {"starts_at": rfc3339(from_ms(decision.start_ms))}
    if decision.wait_ms:
        return {"retry_after_ms": decision.wait_ms}
    if decision.rule:
        return {"rule": decision.rule}
    return {}


def retry_after_s(decision: Decision) -> int:
    """Whole seconds after which to ask again, at least one."""
    return max(1, math.ceil(decision.wait_ms / 1000))
