"""Redeem codes over HTTP (API.md, codes): generated, fetched once, revoked, looked up; exchanged by storefronts."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field
from werkzeug.exceptions import MethodNotAllowed

from coupon_workers.codes import code_batch_reading as reading
from coupon_workers.codes.code_batch import CodeBatchStatus
from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.codes.code_batch_reading import CodeBatchAnswer
from coupon_workers.codes.code_export import fetch_codes
from coupon_workers.codes.code_lookup import CodeAnswer, look_up_code
from coupon_workers.codes.exchange import Exchange, exchange_code
from coupon_workers.codes.new_code_batch import NewCodeBatch, create_code_batch
from coupon_workers.errors import CapacityError
from coupon_workers.wallet.wallet import find_coupon
from web.auth import require
from web.batch_model import Identity
from web.codes_model import CodeBatchBody, ExchangeBody, LookupBody
from web.context import principal, services
from web.idempotent import idempotent, subject_id
from web.page import PageQuery, page
from web.path_id import path_id
from web.problem import ProblemError
from web.problem_code import refuses
from web.wallet_api import CouponAnswer

api = APIBlueprint("codes", __name__, abp_tags=[Tag(name="Redeem codes", description="Codes, each for one coupon")])

Json = dict[str, Any]

_CSV = {"description": "code", "content": {"text/csv": {"schema": {"type": "string"}}}}


class CodeBatchPath(BaseModel):
    """The batch of codes in the path."""

    code_batch_id: str

    @property
    def number(self) -> int:
        """The identity. Raises ``NotFound`` for a text that is none."""
        return path_id(self.code_batch_id, "CODE_BATCH_NOT_FOUND")


class CodeBatchQuery(PageQuery):
    """Which batches of codes, and which page of them."""

    status: CodeBatchStatus | None = Field(None, description="only those that are in it now")
    template_id: Identity | None = Field(None, description="only those of this template")


class CodeBatchPage(BaseModel):
    """Batches of codes, newest first."""

    items: list[CodeBatchAnswer]
    next_cursor: str | None


class ExchangeAnswer(CouponAnswer):
    """The coupon of a code; ``replayed``: this user had it already."""

    replayed: bool


def _json(answer: BaseModel) -> Json:
    return answer.model_dump(mode="json")


@api.post("/v1/code-batches", summary="Generate redeem codes", responses={202: CodeBatchAnswer})
@require("admin")
@refuses(
    "TEMPLATE_NOT_FOUND", "CAPACITY", "NOT_ENOUGH_STOCK", "TEMPLATE_NOT_ACTIVE", "TYPE_NOT_OFFERED", "CODES_NOT_SET_UP"
)
@idempotent
def post_code_batch(body: CodeBatchBody) -> tuple[Json, int]:
    """A unit of stock is set aside for each code at once; the codes are generated behind it.

    422 `CAPACITY`, with `space` and `allowed`, where so many codes of this form would be easy to guess. 409
    `NOT_ENOUGH_STOCK` with `available`, `TEMPLATE_NOT_ACTIVE` with `current_status`, `TYPE_NOT_OFFERED`,
    `CODES_NOT_SET_UP`.
    """
    batch = NewCodeBatch(subject_id(), body.template_id, body.quantity, body.form, body.channel, body.expires_at)
    try:
        create_code_batch(services(), batch, principal().key_id)
    except CapacityError as error:
        detail = f"quantity {error.errors[0][1]}"
        raise ProblemError(
            422, "CAPACITY", detail, errors=error.errors, space=error.space, allowed=error.allowed
        ) from None
    return _json(reading.read_one(services(), batch.code_batch_id)), 202


@api.get("/v1/code-batches", summary="List batches of codes", responses={200: CodeBatchPage})
@require("admin")
def list_code_batches(query: CodeBatchQuery) -> Any:
    """Newest first."""
    batches = reading.read_page(
        services(), limit=query.limit + 1, before=query.before, status=query.status, template_id=query.template_id
    )
    return page(batches, query.limit, _json, lambda batch: [int(batch.code_batch_id)])


@api.get("/v1/code-batches/<code_batch_id>", summary="How a batch of codes stands", responses={200: CodeBatchAnswer})
@require("admin")
@refuses("CODE_BATCH_NOT_FOUND")
def get_code_batch(path: CodeBatchPath) -> Json:
    """Its counts at this moment."""
    return _json(reading.read_one(services(), path.number))


@api.get("/v1/code-batches/<code_batch_id>/codes.csv", summary="Fetch the codes, once", responses={200: _CSV})
@require("admin")
@refuses(
    "CODE_BATCH_NOT_FOUND",
    "NOT_READY",
    "FETCH_IN_PROGRESS",
    "CODES_FETCHED",
    "CODES_DROPPED",
    "CODES_NOT_SET_UP",
    "PEPPER_MISSING",
)
def get_codes(path: CodeBatchPath) -> Response:
    """A line each, once: when the last one has been taken they are deleted here. A download that broke off may be
    begun anew. No HEAD: it would take the codes without handing them out. 409 `NOT_READY`, `FETCH_IN_PROGRESS`; 410
    `CODES_FETCHED` with `fetched_at` and `fetched_by`, `CODES_DROPPED`."""
    if request.method == "HEAD":  # which comes with every GET, and is sent by whoever only wants to know
        raise MethodNotAllowed(["GET", "OPTIONS"])
    download = fetch_codes(services(), path.number, principal().key_id)
    answer = Response(download.pieces, content_type="text/csv; charset=utf-8")
    answer.headers["Content-Length"] = str(download.length)
    answer.headers["Content-Disposition"] = f'attachment; filename="codes-{path.number}.csv"'
    answer.headers["Cache-Control"] = "no-store"
    return answer


@api.post(
    "/v1/code-batches/<code_batch_id>/revoke", summary="Revoke a batch of codes", responses={200: CodeBatchAnswer}
)
@require("admin")
@refuses("CODE_BATCH_NOT_FOUND", "INVALID_STATUS")
@idempotent
def post_revocation(path: CodeBatchPath) -> Json:
    """Unused codes are worth nothing from now on, and their stock is given back; coupons stay. 409 `INVALID_STATUS`."""
    revoke_code_batch(services(), path.number, principal().key_id)
    return _json(reading.read_one(services(), path.number))


@api.post("/v1/codes/lookup", summary="What became of a code", responses={200: CodeAnswer})
@require("admin")
@refuses("CODE_NOT_FOUND", "CODES_NOT_SET_UP")
def post_lookup(body: LookupBody) -> Json:
    """For a code that a customer reads out. 404 `CODE_NOT_FOUND`."""
    return _json(look_up_code(services(), body.code))


@api.post("/v1/codes/exchange", summary="Exchange a code for its coupon", responses={200: ExchangeAnswer})
@require("storefront")
@refuses(
    "CODE_INVALID",
    "RATE_LIMITED",
    "LIMIT_REACHED",
    "DAILY_LIMIT_REACHED",
    "PAUSED",
    "NOT_STARTED",
    "REQUEST_REUSED",
    "CODES_NOT_SET_UP",
    "NO_IDENTITY",
)
def post_exchange(body: ExchangeBody) -> Json:
    """Once; whoever exchanged it gets his coupon again. 404 `CODE_INVALID` for every wrong, used, foreign or expired
    code; 429 `RATE_LIMITED` after too many of them. A right code stays unused: 409 `LIMIT_REACHED`,
    `DAILY_LIMIT_REACHED`, `PAUSED`, `NOT_STARTED` with `starts_at`. 409 `REQUEST_REUSED` for a `request_id` that
    exchanged another code.
    """
    exchanged = exchange_code(services(), Exchange(**body.model_dump()))
    coupon = find_coupon(services(), body.user_id, exchanged.coupon_id)
    assert coupon is not None
    return coupon | {"replayed": exchanged.replayed}
