"""Revoking coupons over HTTP (API.md, Templates): all unused ones of a template, or one."""

from __future__ import annotations

from typing import Annotated, Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from coupon_workers.claiming.claim_request import user_id_problem
from coupon_workers.coupons.revocation import ask_revocation
from coupon_workers.coupons.revocation_reading import RevocationAnswer, read_revocation, revocation_answer
from coupon_workers.coupons.single_revocation import revoke_coupon
from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.wallet.wallet import read_coupon
from web.auth import require
from web.context import principal, services
from web.idempotent import idempotent, subject_id
from web.path_id import path_id
from web.problem_code import refuses
from web.templates_api import TemplatePath
from web.wallet_api import CouponHistoryAnswer, CouponPath

api = APIBlueprint("revocations", __name__, abp_tags=[Tag(name="Revocations", description="Coupons taken back")])

LONGEST_REASON = 500

Reason = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=LONGEST_REASON)]


class RevokeBody(BaseModel):
    """Why they are taken back."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason = Field(examples=["the amount was wrong"])


class RevocationPath(TemplatePath):
    """The recall in the path."""

    revocation_id: str


@api.post("/v1/templates/<template_id>/revoke", summary="Recall unused coupons", responses={202: RevocationAnswer})
@require("admin")
@refuses("TEMPLATE_NOT_FOUND")
@idempotent
def post_revocation(path: TemplatePath, body: RevokeBody) -> Any:
    """A worker revokes every unused coupon that was made before now, and gives its unit back where the template has
    `restock_on_revoke`. Those that orders hold are left, and counted. Pause the template first if nobody is to claim
    meanwhile. While a recall of the template runs, it is answered."""
    asked = ask_revocation(services(), path.number, subject_id(), body.reason, principal().key_id)
    return revocation_answer(asked).model_dump(mode="json"), 202


@api.get(
    "/v1/templates/<template_id>/revocations/<revocation_id>",
    summary="How a recall stands",
    responses={200: RevocationAnswer},
)
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "REVOCATION_NOT_FOUND")
def get_revocation(path: RevocationPath) -> Any:
    """Its counts at this moment."""
    number = path_id(path.revocation_id, "REVOCATION_NOT_FOUND")
    return read_revocation(services(), path.number, number).model_dump(mode="json")


@api.post(
    "/v1/users/<user:user_id>/coupons/<coupon_no>/revoke",
    summary="Revoke a coupon",
    responses={200: CouponHistoryAnswer},
)
@require("admin")
@refuses("COUPON_NOT_FOUND", "EXPIRED", "COUPON_NOT_AVAILABLE")
@idempotent
def post_coupon_revocation(path: CouponPath, body: RevokeBody) -> dict[str, Any]:
    """An unused coupon, with a reason that is kept in the audit log. One that is revoked is answered as it is. 409
    `EXPIRED`, or `COUPON_NOT_AVAILABLE` with `coupon_status`, and `order_no` when an order holds it."""
    problem = user_id_problem(path.user_id)
    if problem:
        raise InvalidInput([("user_id", problem)])
    coupon_id = path_id(path.coupon_no, "COUPON_NOT_FOUND")
    revoke_coupon(services(), path.user_id, coupon_id, body.reason, principal().key_id)
    coupon = read_coupon(services(), path.user_id, coupon_id)
    if coupon is None:
        raise NotFound("COUPON_NOT_FOUND", "this user has no coupon of that number")
    return coupon
