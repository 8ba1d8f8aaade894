"""Coupon templates over HTTP (API.md, Templates): made and moved by operators, read by storefronts too."""

from __future__ import annotations

from typing import Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from coupon_workers.approval.reading import ApprovalAnswer
from coupon_workers.templates import template_desk as desk
from coupon_workers.templates import template_reading as reading
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_answer import PreheatAnswer, TemplateAnswer, TemplatePage, TemplateStats
from coupon_workers.templates.template_change import patch_template as change_template
from coupon_workers.templates.template_patch import TemplatePatch
from coupon_workers.templates.template_status import TemplateStatus
from web.auth import require
from web.context import principal, services
from web.idempotent import idempotent, subject_id
from web.page import PageQuery, page
from web.path_id import path_id
from web.problem_code import refuses

api = APIBlueprint(
    "templates", __name__, abp_tags=[Tag(name="Templates", description="What a coupon is, how many, and when")]
)

Json = dict[str, Any]


class TemplatePath(BaseModel):
    """The template in the path."""

    template_id: str

    @property
    def number(self) -> int:
        """The identity. Raises ``NotFound`` for a text that is none."""
        return path_id(self.template_id, "TEMPLATE_NOT_FOUND")


class TemplateQuery(PageQuery):
    """Which templates, and which page of them."""

    status: TemplateStatus | None = Field(None, description="only those that are in it now")


def _json(answer: BaseModel) -> Json:
    return answer.model_dump(mode="json", by_alias=True)


@api.post("/v1/templates", summary="Create a template", responses={201: TemplateAnswer})
@require("admin")
@refuses("TEMPLATE_NO_TAKEN")
@idempotent
def create_template(body: TemplateBody) -> tuple[Json, int]:
    """A draft: nothing can be claimed before it is published. 409 `TEMPLATE_NO_TAKEN`."""
    return _json(desk.create_template(services(), body, principal().key_id, template_id=subject_id())), 201


@api.get("/v1/templates", summary="List templates", responses={200: TemplatePage})
@require("admin", "storefront")
def list_templates(query: TemplateQuery) -> Json:
    """Newest first, archived ones too unless a status is asked for."""
    templates = reading.read_page(services(), limit=query.limit + 1, before=query.before, status=query.status)
    answer: Json = page(templates, query.limit, _json, lambda template: [int(template.template_id)])
    return answer


@api.get("/v1/templates/<template_id>", summary="Read a template", responses={200: TemplateAnswer})
@require("admin", "storefront")
@refuses("TEMPLATE_NOT_FOUND")
def get_template(path: TemplatePath) -> Json:
    """The template with its stock at this moment."""
    return _json(reading.read_one(services(), path.number))


@api.patch(
    "/v1/templates/<template_id>",
    summary="Change a template",
    responses={200: TemplateAnswer, 202: ApprovalAnswer},
)
@require("admin")
@refuses(
    "TEMPLATE_NOT_FOUND",
    "NOT_PATCHABLE",
    "INVALID_STATUS",
    "BELOW_TAKEN",
    "HAS_ARCHIVED",
    "APPROVAL_PENDING",
    "CHANGE_PENDING",
    "TEMPLATE_NO_TAKEN",
)
@idempotent
def patch_template(path: TemplatePath, body: TemplatePatch) -> tuple[Json, int]:
    """A draft: anything. Later: name, total_quantity, claim_end, notify; other fields as they are.

    A field takes the place of the stored one as a whole. 202 with the request for approval, and nothing changed, when
    more units or a later end need a second person. 409 `NOT_PATCHABLE` with the fields, `BELOW_TAKEN` for a total below
    what is issued, reserved and queued, `APPROVAL_PENDING`, `CHANGE_PENDING`, `TEMPLATE_NO_TAKEN`.
    """
    answer = change_template(services(), path.number, body.root, principal().key_id)
    return _json(answer), 202 if isinstance(answer, ApprovalAnswer) else 200


@api.delete("/v1/templates/<template_id>", summary="Archive a template", responses={200: TemplateAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "HAS_OUTSTANDING", "INVALID_STATUS")
@idempotent
def delete_template(path: TemplatePath) -> Json:
    """409 `HAS_OUTSTANDING`, with counts by status, while coupons of it may still be used."""
    return _json(desk.archive_template(services(), path.number))


@api.post("/v1/templates/<template_id>/publish", summary="Publish a draft", responses={200: TemplateAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "INVALID_STATUS")
@idempotent
def publish_template(path: TemplatePath) -> Json:
    """To scheduled or active by the clock, and preheated; to pending_approval where a second person is needed."""
    return _json(desk.publish_template(services(), path.number, principal().key_id))


@api.post("/v1/templates/<template_id>/pause", summary="Pause claiming", responses={200: TemplateAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "INVALID_STATUS")
@idempotent
def pause_template(path: TemplatePath) -> Json:
    """Once this is answered no claim is accepted any more; claims still queued are rejected `PAUSED`.

    503 when Redis could not be told: ask again.
    """
    return _json(desk.pause_template(services(), path.number))


@api.post("/v1/templates/<template_id>/resume", summary="Resume claiming", responses={200: TemplateAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "INVALID_STATUS")
@idempotent
def resume_template(path: TemplatePath) -> Json:
    """A paused template goes on, by the clock."""
    return _json(desk.resume_template(services(), path.number))


@api.post("/v1/templates/<template_id>/offline", summary="Take offline", responses={200: TemplateAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "INVALID_STATUS")
@idempotent
def take_offline(path: TemplatePath) -> Json:
    """Claims and new locks stop for good; claims still queued are rejected. 503 when Redis could not be told."""
    return _json(desk.take_offline(services(), path.number))


@api.post("/v1/templates/<template_id>/preheat", summary="Load into Redis", responses={200: PreheatAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "INVALID_STATUS", "HAS_ARCHIVED")
@idempotent
def preheat_template(path: TemplatePath) -> Json:
    """Rebuilds the gate from the database; safe at any time, also under traffic."""
    return _json(desk.preheat(services(), path.number))


@api.post("/v1/templates/<template_id>/clone", summary="Clone a template", responses={201: TemplateAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND")
@idempotent
def clone_template(path: TemplatePath) -> tuple[Json, int]:
    """A new draft with the same rules and a number of its own."""
    return _json(desk.clone_template(services(), path.number, principal().key_id, clone_id=subject_id())), 201


@api.get("/v1/templates/<template_id>/stats", summary="Funnel and cost", responses={200: TemplateStats})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND")
def get_stats(path: TemplatePath) -> Json:
    """How many were claimed, issued, rejected and used, and what the discounts have cost."""
    return _json(reading.read_stats(services(), path.number))
