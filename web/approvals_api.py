"""Approval over HTTP (API.md, Templates): the inbox of the second person, and what he decides."""

from __future__ import annotations

from typing import Annotated, Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from coupon_workers.approval import desk
from coupon_workers.approval.reading import ApprovalAnswer, read_approvals
from coupon_workers.approval.request import ApprovalState
from coupon_workers.templates.template_answer import TemplateAnswer
from web.auth import require
from web.batch_model import Identity
from web.context import principal, services
from web.idempotent import idempotent
from web.page import PageQuery, page
from web.problem_code import refuses
from web.templates_api import TemplatePath

api = APIBlueprint(
    "approvals", __name__, abp_tags=[Tag(name="Approvals", description="What waits for a second person")]
)

Json = dict[str, Any]

LONGEST_COMMENT = 500

Comment = Annotated[
    str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=LONGEST_COMMENT)
]


class ApprovalQuery(PageQuery):
    """Which requests, and which page of them."""

    state: ApprovalState | None = Field(None, description="only those that are in it")
    template_id: Identity | None = Field(None, description="only those of this template")


class ApprovalPage(BaseModel):
    """Requests for approval, newest first."""

    items: list[ApprovalAnswer]
    next_cursor: str | None


class DecisionBody(BaseModel):
    """A word on the decision, and what it is about."""

    model_config = ConfigDict(extra="forbid")

    approval_id: Identity | None = Field(None, description="the request that was looked at; absent: whichever waits")
    comment: Comment | None = None


class RejectionBody(BaseModel):
    """Why not, and what it is about."""

    model_config = ConfigDict(extra="forbid")

    approval_id: Identity | None = Field(None, description="the request that was looked at; absent: whichever waits")
    comment: Comment = Field(examples=["half the budget, please"])


@api.get("/v1/approvals", summary="What waits for approval", responses={200: ApprovalPage})
@require("admin")
def list_approvals(query: ApprovalQuery) -> Any:
    """Publications and changes of templates, with every field before and after, and what it costs at worst. Newest
    first; `state=pending` is the inbox."""
    approvals = read_approvals(
        services(), limit=query.limit + 1, before=query.before, state=query.state, template_id=query.template_id
    )
    return page(approvals, query.limit, _json, lambda approval: [int(approval.approval_id)])


@api.post("/v1/templates/<template_id>/approve", summary="Approve", responses={200: TemplateAnswer})
@require("admin")
@refuses(
    "TEMPLATE_NOT_FOUND",
    "OWN_TEMPLATE",
    "NOTHING_PENDING",
    "APPROVAL_CHANGED",
    "BELOW_TAKEN",
    "INVALID_STATUS",
    "HAS_ARCHIVED",
)
@idempotent
def approve(path: TemplatePath, body: DecisionBody) -> Json:
    """What was asked for is done exactly: the draft is published, or the change applied. 409 `OWN_TEMPLATE` for the
    key that made the template, changed it last or asked; `NOTHING_PENDING`; `APPROVAL_CHANGED`; `BELOW_TAKEN` for a
    change that no longer fits."""
    comment, approval_id = body.comment, body.approval_id
    operator = principal().key_id
    return _json(desk.approve(services(), path.number, operator, approval_id=approval_id, comment=comment))


@api.post("/v1/templates/<template_id>/reject", summary="Reject", responses={200: TemplateAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "OWN_TEMPLATE", "NOTHING_PENDING", "APPROVAL_CHANGED")
@idempotent
def reject(path: TemplatePath, body: RejectionBody) -> Json:
    """The template is a draft again, or stays as it is; the comment is kept with the request. 409 as of `/approve`."""
    operator = principal().key_id
    return _json(desk.reject(services(), path.number, operator, body.comment, approval_id=body.approval_id))


@api.post("/v1/templates/<template_id>/withdraw", summary="Withdraw a request", responses={200: TemplateAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "NOTHING_PENDING", "APPROVAL_CHANGED")
@idempotent
def withdraw(path: TemplatePath, body: DecisionBody) -> Json:
    """Asks no longer; by any operator. The template is a draft again, or stays as it is. 409 `NOTHING_PENDING`,
    `APPROVAL_CHANGED`."""
    operator = principal().key_id
    return _json(desk.withdraw(services(), path.number, operator, body.comment, approval_id=body.approval_id))


def _json(answer: BaseModel) -> Json:
    return answer.model_dump(mode="json", by_alias=True)
