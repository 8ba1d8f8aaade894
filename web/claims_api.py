"""Claims over HTTP (API.md, Claims). ``POST /v1/claims`` is the hottest view: it does nothing it could leave out."""

from __future__ import annotations

import json
from logging import DEBUG, getLogger
from typing import Any

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag

from coupon_workers.claiming.claim_request import ClaimRequest, read_claim
from coupon_workers.claiming.claim_status import ClaimStatus, claim_status
from coupon_workers.claiming.gate import Decision
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.field_message import NOT_AN_OBJECT, UNKNOWN
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.metrics import count_claim, count_claims
from coupon_workers.runtime.structured_log import get_logger
from web.auth import require
from web.claim_answer import REFUSALS, claim_body, evidence_of, retry_after_s, status_of
from web.claim_front import claim_front
from web.claim_model import (
    MAX_BATCH,
    BatchBody,
    ClaimAnswer,
    ClaimBatchAnswer,
    ClaimBody,
    ClaimPath,
    ClaimStatusAnswer,
    WaitQuery,
)
from web.context import services, web_of_app
from web.path_id import path_id
from web.problem import problem
from web.problem_code import refuses
from web.request_frame import REQUEST_ID

api = APIBlueprint("claims", __name__, abp_tags=[Tag(name="Claims", description="Claiming limited coupons")])

JSON = "application/json"

log = get_logger(__name__)
claim_log = getLogger(__name__)
"""Asked whether the line of a claim is wanted: cheaper than making the line."""


def _described(model: type[ClaimBody] | type[BatchBody]) -> dict[str, Any]:
    """The body of a view that reads its input by hand, for the published description."""
    schema = model.model_json_schema()
    if definitions := schema.pop("$defs", None):
        schema["properties"]["claims"]["items"] = definitions[ClaimBody.__name__]
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


@api.post(
    "/v1/claims",
    summary="Claim a coupon",
    responses={202: ClaimAnswer, 200: ClaimAnswer},
    openapi_extensions=_described(ClaimBody),
)
@require("storefront")
@refuses(
    "TEMPLATE_NOT_FOUND",
    "NOT_STARTED",
    "ENDED",
    "PAUSED",
    "SOLD_OUT",
    "LIMIT_REACHED",
    "DAILY_LIMIT_REACHED",
    "NOT_ELIGIBLE",
    "RATE_LIMITED",
    "NOT_WARMED",
    "BACKLOG_FULL",
    "RISK_REJECTED",
    "NO_IDENTITY",
)
def post_claim() -> Response:
    """One round trip to Redis decides; what was accepted ends issued or rejected, for ever readable."""
    asked = read_claim(request.get_json())
    decision = claim_front().claim(asked)
    count_claim((asked.template_id, decision.outcome))
    if claim_log.isEnabledFor(DEBUG):
        _log_claim(asked, decision)
    status = status_of(decision)
    if status < 300:
        return Response(json.dumps(claim_body(decision, asked)), status, content_type=JSON)
    return _refused(decision, status)


def _log_claim(asked: ClaimRequest, decision: Decision) -> None:
    log.debug(
        "claim",
        request_id=request.environ[REQUEST_ID],
        template_id=asked.template_id,
        claim_id=decision.claim_id or None,
        outcome=decision.outcome.value,
    )


def _refused(decision: Decision, status: int) -> Response:
    return problem(
        status,
        decision.outcome.value,
        REFUSALS[decision.outcome].detail,
        headers={"Retry-After": str(retry_after_s(decision))} if status in (429, 503) else None,
        evidence=evidence_of(decision),
    )


@api.post(
    "/v1/claims/batch",
    summary="Claim up to 500 coupons",
    responses={200: ClaimBatchAnswer},
    openapi_extensions=_described(BatchBody),
)
@require("storefront")
@refuses("NO_IDENTITY")
def post_claims() -> Response:
    """The claims are decided in order, in one round trip; a body with a bad claim in it is refused whole."""
    asked = _read_batch(request.get_json())
    decisions = claim_front().claim_many(asked)
    count_claims((claim.template_id, decision.outcome) for claim, decision in zip(asked, decisions, strict=True))
    results = [_item(decision) for decision in decisions]
    return Response(json.dumps({"results": results}, separators=(",", ":")), 200, content_type=JSON)


def _read_batch(body: Any) -> list[ClaimRequest]:
    if not isinstance(body, dict):
        raise InvalidInput([("", NOT_AN_OBJECT)])
    errors = [(str(field), UNKNOWN) for field in body if field != "claims"]
    claims = body.get("claims")
    if not isinstance(claims, list) or not 1 <= len(claims) <= MAX_BATCH:
        raise InvalidInput([*errors, ("claims", f"must be a list of 1 to {MAX_BATCH} claims")])
    asked = []
    for number, claim in enumerate(claims):
        try:
            asked.append(read_claim(claim))
        except InvalidInput as error:
            errors += [(f"claims.{number}.{field}".rstrip("."), message) for field, message in error.errors]
    if errors:
        raise InvalidInput(errors)
    return asked


def _item(decision: Decision) -> dict[str, Any]:
    status = status_of(decision)
    if status < 300:
        replayed = decision.outcome is ClaimOutcome.REPLAYED
        state = decision.state if replayed else "queued"
        return {
            "status": status,
            "claim_id": str(decision.claim_id),
            "claim_status": state if state in ("queued", "issued") else "rejected",
            "replayed": replayed,
        }
    return {
        "status": status,
        "code": decision.outcome.value,
        "detail": REFUSALS[decision.outcome].detail,
        **evidence_of(decision),
    }


@api.get("/v1/claims/<claim_id>", summary="How a claim stands", responses={200: ClaimStatusAnswer})
@require("storefront")
@refuses("CLAIM_NOT_FOUND")
def get_claim(path: ClaimPath, query: WaitQuery) -> dict[str, Any]:
    """Queued, issued or rejected; with ``wait`` a queued claim is waited for, unless too many wait already.

    `user_id` is null while it is queued.
    """
    claim_id = path_id(path.claim_id, "CLAIM_NOT_FOUND")
    found = _status(claim_id, query.wait)
    if found is None:
        raise NotFound("CLAIM_NOT_FOUND", "there is no such claim")
    return {
        "claim_id": str(claim_id),
        "status": found.status,
        "coupon_no": str(claim_id) if found.status == "issued" else None,
        "template_id": str(found.template_id),
        "user_id": found.user_id,
        "reason": found.reason,
        "queued_at": rfc3339(found.queued_at),
        "settled_at": rfc3339(found.settled_at) if found.settled_at else None,
    }


def _status(claim_id: int, wait_s: float) -> ClaimStatus | None:
    waits = web_of_app().waits
    if not wait_s or not waits.acquire(blocking=False):
        return claim_status(services(), claim_id)
    try:
        return claim_status(services(), claim_id, wait_s)
    finally:
        waits.release()
