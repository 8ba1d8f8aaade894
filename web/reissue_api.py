"""What an operator does for one user over HTTP: a coupon by hand, or in place of another; a locked one freed."""

from __future__ import annotations

from typing import Annotated, Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from coupon_workers.claiming.claim_request import TEXT_LENGTH
from coupon_workers.coupons.reissue import Reissue, reissue_coupon
from coupon_workers.orders.unlock import unlock_coupon
from coupon_workers.wallet.wallet import find_coupon, read_coupon
from web.auth import require
from web.batch_model import Identity
from web.context import principal, services
from web.idempotent import idempotent
from web.path_id import path_id
from web.problem_code import refuses
from web.revocations_api import Reason
from web.wallet_api import CouponAnswer, CouponHistoryAnswer, CouponPath, UserPath, checked_user

api = APIBlueprint("reissues", __name__, abp_tags=[Tag(name="Wallet")])

RequestId = Annotated[str, StringConstraints(strict=True, pattern=r"^[!-~]+$", max_length=TEXT_LENGTH)]


class ReissueBody(BaseModel):
    """Which coupon, why, and in place of which."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"template_id": "653247040368672768", "request_id": "ticket-4711", "reason": "paid twice"}
        },
    )

    template_id: Identity
    request_id: RequestId = Field(description="of this user: it has one coupon, for good")
    reason: Reason
    in_place_of: Identity | None = Field(None, description="`coupon_no` of a coupon of the user that ends with it")


class UnlockBody(BaseModel):
    """Why, and whether also while the order may still be paid."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason = Field(examples=["the buyer gave up"])
    force: bool = Field(False, strict=True)


@api.post(
    "/v1/users/<user:user_id>/coupons",
    summary="Give a coupon by hand",
    responses={200: CouponAnswer, 201: CouponAnswer},
)
@require("admin")
@refuses(
    "TEMPLATE_NOT_FOUND",
    "COUPON_NOT_FOUND",
    "REQUEST_REUSED",
    "ALREADY_REPLACED",
    "COUPON_NOT_AVAILABLE",
    "SOLD_OUT",
    "PAUSED",
    "INVALID_STATUS",
    "HAS_ARCHIVED",
    "TYPE_NOT_OFFERED",
    "EXPIRED",
    "ABOVE_BUDGET",
)
@idempotent
def post_coupon(path: UserPath, body: ReissueBody) -> tuple[dict[str, Any], int]:
    """It takes a unit of the template, also after its claiming has ended, and counts against no limit. With
    `in_place_of` the named coupon is revoked if it is unused; an expired or revoked one is left as it is. 200 when the
    `request_id` has made it before."""
    user_id = checked_user(path.user_id)
    wish = Reissue(user_id, body.template_id, body.request_id, body.reason, body.in_place_of)
    made = reissue_coupon(services(), wish, f"key:{principal().key_id}")
    coupon = find_coupon(services(), user_id, made.coupon_id)
    assert coupon is not None
    return coupon, 200 if made.replayed else 201


@api.post(
    "/v1/users/<user:user_id>/coupons/<coupon_no>/unlock",
    summary="Free a locked coupon",
    responses={200: CouponHistoryAnswer},
)
@require("admin")
@refuses("COUPON_NOT_FOUND", "COUPON_NOT_AVAILABLE", "LOCK_STANDS", "LOCK_BROKEN", "ORDER_BROKEN")
@idempotent
def post_unlock(path: CouponPath, body: UnlockBody) -> dict[str, Any]:
    """The order that holds it lets go of all its coupons. Without `force` only where its lock has run out or the order
    centre has closed it. A payment that comes after all locks anew what is still free."""
    user_id, coupon_id = checked_user(path.user_id), path_id(path.coupon_no, "COUPON_NOT_FOUND")
    unlock_coupon(services(), user_id, coupon_id, body.reason, f"key:{principal().key_id}", force=body.force)
    coupon = read_coupon(services(), user_id, coupon_id)
    assert coupon is not None
    return coupon
