"""Risk policies over HTTP: rules as data, with versions (docs/risk.md)."""

from __future__ import annotations

from typing import Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from coupon_workers.risk import policy_desk
from coupon_workers.risk.policy import PolicyName, RiskPolicyBody
from coupon_workers.risk.policy_effect import PolicyEffect, read_effect
from coupon_workers.risk.policy_reading import (
    RiskPolicyAnswer,
    policy_answer,
    read_policies,
    read_policy,
    read_versions,
)
from web.auth import require
from web.context import principal, services
from web.idempotent import idempotent
from web.page import PageQuery, page, read_cursor
from web.problem_code import refuses
from web.query_model import QueryModel

RISK = Tag(name="Risk control", description="Policies, lists, scores, claims held for review, verdicts")

api = APIBlueprint("risk_policies", __name__, abp_tags=[RISK])


class PolicyPath(BaseModel):
    """The policy in the path: the name that templates have in ``risk_policy``."""

    name: PolicyName


class PutQuery(QueryModel):
    """What the caller believes to replace."""

    if_version: int | None = Field(None, ge=0, lt=2**53, description="refuse unless it is in force; 0: none is")


class PolicyPage(BaseModel):
    """Policies, by name; versions, newest first."""

    items: list[RiskPolicyAnswer]
    next_cursor: str | None


@api.get("/v1/risk-policies", summary="Risk policies in force", responses={200: PolicyPage})
@require("admin")
def list_policies(query: PageQuery) -> Any:
    """By name."""
    position = read_cursor(query.cursor, str)
    found = read_policies(services(), limit=query.limit + 1, after=position[0] if position else "")
    return page(found, query.limit, _json, lambda policy: [policy.name])


@api.get("/v1/risk-policies/<name>", summary="A risk policy", responses={200: RiskPolicyAnswer})
@require("admin")
@refuses("POLICY_NOT_FOUND")
def get_policy(path: PolicyPath) -> Any:
    """The version in force."""
    return _json(read_policy(services(), path.name))


@api.get("/v1/risk-policies/<name>/versions", summary="Versions of a risk policy", responses={200: PolicyPage})
@require("admin")
def list_versions(path: PolicyPath, query: PageQuery) -> Any:
    """Every version there was, also of a policy that was taken away."""
    found = read_versions(services(), path.name, limit=query.limit + 1, before=query.before)
    return page(found, query.limit, _json, lambda policy: [policy.version])


@api.get("/v1/risk-policies/<name>/effect", summary="What a risk policy has done", responses={200: PolicyEffect})
@require("admin")
@refuses("POLICY_NOT_FOUND")
def policy_effect(path: PolicyPath) -> Any:
    """How often each rule fired, of rules in `shadow` what they would have done: the newest 10,000 verdicts of each of
    the newest twenty templates that name it."""
    return _json(read_effect(services(), path.name))


@api.put("/v1/risk-policies/<name>", summary="Set a risk policy", responses={200: RiskPolicyAnswer})
@require("admin")
@refuses("POLICY_CHANGED")
@idempotent
def put_policy(path: PolicyPath, query: PutQuery, body: RiskPolicyBody) -> Any:
    """The next version, in force at once for all templates that name it. 409 `POLICY_CHANGED`."""
    operator = principal().key_id
    row = policy_desk.put_policy(services(), path.name, body, operator, if_version=query.if_version)
    return _json(policy_answer(row))


@api.delete("/v1/risk-policies/<name>", summary="Take a risk policy away", responses={200: RiskPolicyAnswer})
@require("admin")
@refuses("POLICY_NOT_FOUND", "POLICY_IN_USE")
@idempotent
def delete_policy(path: PolicyPath) -> Any:
    """Its versions stay readable. 409 `POLICY_IN_USE` while a template names it."""
    return _json(policy_answer(policy_desk.delete_policy(services(), path.name, principal().key_id)))


def _json(answer: BaseModel) -> Any:
    return answer.model_dump(mode="json")
