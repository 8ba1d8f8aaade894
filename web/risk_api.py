"""Risk control over HTTP: lists, scores, claims held for review, verdicts (docs/risk.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask_openapi3 import APIBlueprint
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from coupon_workers.claiming.claim_request import TEXT_LENGTH
from coupon_workers.orders.order import UserId
from coupon_workers.risk import listing, review_desk, score
from coupon_workers.risk.listing import ListEntry
from coupon_workers.risk.policy import MOST_SCORE, Dimension, RuleName
from coupon_workers.risk.review_reading import ReviewAnswer, ReviewState, read_reviews, review_answer
from coupon_workers.risk.score import ScoreAnswer
from coupon_workers.risk.verdict_reading import VerdictAnswer, read_verdicts
from coupon_workers.templates.field_type import Instant
from web.approvals_api import Comment
from web.auth import require
from web.batch_model import Identity
from web.context import principal, services
from web.idempotent import idempotent
from web.page import PageQuery, page, read_cursor
from web.path_id import path_id
from web.problem_code import refuses
from web.query_model import QueryModel
from web.risk_policies_api import RISK
from web.wallet_api import UserPath, checked_user

api = APIBlueprint("risk", __name__, abp_tags=[RISK])

Value = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=TEXT_LENGTH, pattern=r"^[^\x00-\x1f\x7f]+$")
]


class ListPath(BaseModel):
    """The list in the path."""

    name: Literal["allow", "block"]


class EntryBody(BaseModel):
    """Whom to list."""

    model_config = ConfigDict(extra="forbid")

    dimension: Dimension
    value: Value = Field(examples=["device-77"], description="as claims name it; of an IPv6 address its /64 counts")
    expires_at: Instant | None = Field(None, description="null: for good")
    comment: Comment | None = None


class EntryQuery(QueryModel):
    """Whom to take off."""

    dimension: Dimension
    value: Value


class EntriesQuery(PageQuery):
    """Which entries, and which page of them."""

    dimension: Dimension | None = None
    value: Value | None = Field(None, description="only those that begin so; of an IPv6 address its /64 too")


class EntryPage(BaseModel):
    """Entries in force, by dimension and value."""

    items: list[ListEntry]
    next_cursor: str | None


class ScoreBody(BaseModel):
    """How risky an account is."""

    model_config = ConfigDict(extra="forbid")

    score: Annotated[int, Field(strict=True, ge=0, le=MOST_SCORE)] = Field(examples=[900])
    expires_at: Instant | None = Field(None, description="null: until it is set anew")


class AskBody(BaseModel):
    """Whose scores will be wanted."""

    model_config = ConfigDict(extra="forbid")

    user_ids: Annotated[list[UserId], Field(min_length=1, max_length=500)] = Field(examples=[["u-1001"]])


class AskAnswer(BaseModel):
    """How many were asked for."""

    asked: int


class ReviewQuery(PageQuery):
    """Which reviews, and which page of them."""

    state: ReviewState | None = None
    template_id: Identity | None = None


class ReviewPath(BaseModel):
    """The held claim in the path."""

    claim_id: str


class ReviewApproveBody(BaseModel):
    """A word on the decision."""

    model_config = ConfigDict(extra="forbid")

    comment: Comment | None = None


class RejectBody(BaseModel):
    """Why not."""

    model_config = ConfigDict(extra="forbid")

    comment: Comment = Field(examples=["one person, forty devices"])


class ReviewPage(BaseModel):
    """Held claims, newest first."""

    items: list[ReviewAnswer]
    next_cursor: str | None


class VerdictQuery(PageQuery):
    """Which verdicts, and which page of them."""

    template_id: Identity | None = None
    user_id: UserId | None = None
    rule: RuleName | None = None


class VerdictPage(BaseModel):
    """Rules that fired, newest first."""

    items: list[VerdictAnswer]
    next_cursor: str | None


@api.get("/v1/risk-lists/<name>", summary="An allow or block list", responses={200: EntryPage})
@require("admin")
def list_entries(path: ListPath, query: EntriesQuery) -> Any:
    """Entries in force."""
    position = read_cursor(query.cursor, str, str)
    after = (position[0], position[1]) if position else ("", "")
    found = listing.read_entries(
        services(), path.name, limit=query.limit + 1, after=after, dimension=query.dimension, search=query.value
    )
    return page(found, query.limit, _json, lambda entry: [entry.dimension, entry.value])


@api.put("/v1/risk-lists/<name>", summary="Put on a list", responses={200: ListEntry})
@require("admin")
@idempotent
def put_entry(path: ListPath, body: EntryBody) -> Any:
    """In force at once for every template with a risk policy; off the other list. What is blocked in one dimension is
    refused, whatever else is allowed."""
    operator = principal().key_id
    until, comment = body.expires_at, body.comment
    return _json(
        listing.put_entry(
            services(), path.name, body.dimension, body.value, operator, expires_at=until, comment=comment
        )
    )


@api.delete("/v1/risk-lists/<name>", summary="Take off a list", responses={200: ListEntry})
@require("admin")
@refuses("ENTRY_NOT_FOUND")
@idempotent
def delete_entry(path: ListPath, query: EntryQuery) -> Any:
    """The entry as it was."""
    return _json(listing.take_off(services(), path.name, query.dimension, query.value, principal().key_id))


@api.put("/v1/risk-scores/<user:user_id>", summary="Set a user's risk score", responses={200: ScoreAnswer})
@require("admin")
@idempotent
def put_score(path: UserPath, body: ScoreBody) -> Any:
    """In force at once for every template whose policy asks for scores."""
    operator = principal().key_id
    user_id = checked_user(path.user_id)
    return _json(score.put_score(services(), user_id, body.score, operator, expires_at=body.expires_at))


@api.get("/v1/risk-scores/<user:user_id>", summary="A user's risk score", responses={200: ScoreAnswer})
@require("admin")
@refuses("SCORE_NOT_FOUND")
def get_score(path: UserPath) -> Any:
    """The last one known, also when it has expired."""
    return _json(score.read_score(services(), checked_user(path.user_id)))


@api.post("/v1/risk-scores", summary="Ask for risk scores", responses={202: AskAnswer})
@require("storefront")
@idempotent
def ask_scores(body: AskBody) -> Any:
    """Ahead of a sale, as users come to its page: the shop's scorer (`COUPON_RISK_SCORER`) looks at those who have no
    score in force."""
    score.ask_scores(services(), body.user_ids)
    return {"asked": len(set(body.user_ids))}, 202


@api.get("/v1/risk-reviews", summary="Claims held for review", responses={200: ReviewPage})
@require("admin")
def list_reviews(query: ReviewQuery) -> Any:
    """`state=held` is the queue. Newest first."""
    found = read_reviews(
        services(), limit=query.limit + 1, before=query.before, state=query.state, template_id=query.template_id
    )
    return page(found, query.limit, _json, lambda review: [int(review.claim_id)])


@api.post("/v1/risk-reviews/<claim_id>/approve", summary="Approve a held claim", responses={200: ReviewAnswer})
@require("admin")
@refuses("REVIEW_NOT_FOUND", "ALREADY_DECIDED", "BUSY")
@idempotent
def approve(path: ReviewPath, body: ReviewApproveBody) -> Any:
    """It is settled as if it had not been held: issued, or rejected for what forbids it by now, which `reason` says."""
    claim_id = path_id(path.claim_id, "REVIEW_NOT_FOUND")
    return _json(review_answer(review_desk.approve(services(), claim_id, principal().key_id, body.comment)))


@api.post("/v1/risk-reviews/<claim_id>/reject", summary="Reject a held claim", responses={200: ReviewAnswer})
@require("admin")
@refuses("REVIEW_NOT_FOUND", "ALREADY_DECIDED", "BUSY")
@idempotent
def reject(path: ReviewPath, body: RejectBody) -> Any:
    """Its unit goes back to the stock, and its claim reads rejected."""
    claim_id = path_id(path.claim_id, "REVIEW_NOT_FOUND")
    return _json(review_answer(review_desk.reject(services(), claim_id, principal().key_id, body.comment)))


@api.get("/v1/risk-verdicts", summary="Verdicts of risk rules", responses={200: VerdictPage})
@require("admin")
def list_verdicts(query: VerdictQuery) -> Any:
    """Of refused claims within seconds, of others as they are settled; kept for ninety days. Newest first."""
    found = read_verdicts(
        services(),
        limit=query.limit + 1,
        before=query.before,
        template_id=query.template_id,
        user_id=query.user_id,
        rule=query.rule,
    )
    return page(found, query.limit, _json, lambda verdict: [int(verdict.verdict_id)])


def _json(answer: BaseModel) -> Any:
    return answer.model_dump(mode="json")
