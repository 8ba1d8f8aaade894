"""A user's coupons over HTTP (API.md, Wallet)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.claiming.claim_request import user_id_problem
from coupon_workers.coupons.transfer import Transfer, transfer_coupon
from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.orders.order import UserId
from coupon_workers.templates.field_type import Instant
from coupon_workers.templates.template import CouponType
from coupon_workers.wallet.wallet import MAX_COUPON_ID, find_coupon, read_coupon, read_wallet
from coupon_workers.wallet.wallet_front import FIRST_PAGE, first_page_json
from web.auth import require
from web.context import principal, services, web_of_app
from web.idempotent import idempotent, subject_id
from web.path_id import path_id
from web.problem_code import refuses
from web.query_model import QueryModel

api = APIBlueprint("wallet", __name__, abp_tags=[Tag(name="Wallet", description="The coupons of a user")])

Status = Literal["unused", "locked", "redeemed", "expired", "revoked", "transferred"]


class CouponAnswer(BaseModel):
    """A coupon. Money is in minor units of ``currency``; ``amount`` or ``percent_off`` by its type."""

    coupon_no: str
    template_id: str
    template_name: str
    user_id: str
    status: Status
    type: CouponType
    amount: int | None = None
    percent_off: int | None = None
    max_discount: int | None
    currency: str
    threshold: int
    valid_from: str
    valid_to: str
    source: Literal["claim", "batch", "code", "lottery", "transfer", "manual"]
    order_no: str | None
    issued_at: str
    locked_until: str | None


class FlowAnswer(BaseModel):
    """One step of a coupon's history."""

    flow_no: int
    action: str
    from_status: Status | None
    to_status: Status
    order_no: str | None
    operator: str
    request_id: str | None
    at: str


class CouponHistoryAnswer(CouponAnswer):
    """A coupon with all that happened to it, oldest first."""

    history: list[FlowAnswer]


class WalletAnswer(BaseModel):
    """A page of coupons, newest first."""

    items: list[CouponAnswer]
    next_cursor: str | None


class UserPath(BaseModel):
    """The user in the path."""

    user_id: str


class CouponPath(UserPath):
    """The coupon in the path."""

    coupon_no: str


class TransferBody(BaseModel):
    """Who is to have the coupon."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"example": {"to_user_id": "u-1002"}})

    to_user_id: UserId


class WalletQuery(QueryModel):
    """Which coupons, and which page of them."""

    status: Status | None = None
    expiring_before: Instant | None = Field(None, description="RFC 3339 with an offset")
    limit: Annotated[int, Field(ge=1, le=200)] = FIRST_PAGE
    cursor: Annotated[str, Field(pattern=r"^[0-9]{1,19}$")] | None = None


@api.get("/v1/users/<user:user_id>/coupons", summary="A user's coupons", responses={200: WalletAnswer})
@require("storefront")
def get_wallet(path: UserPath, query: WalletQuery) -> Response | dict[str, Any]:
    """Newest first. The first page may be kept for a while; every change of the wallet forgets it."""
    user_id = checked_user(path.user_id)
    if query.model_fields_set <= {"limit"} and query.limit == FIRST_PAGE:
        web = web_of_app()
        return Response(first_page_json(web.services, web.wallets, user_id), content_type="application/json")
    before = min(int(query.cursor), MAX_COUPON_ID) if query.cursor else MAX_COUPON_ID
    expiring: datetime | None = query.expiring_before
    coupons = read_wallet(
        services(), user_id, limit=query.limit, before=before, status=query.status, expiring_before=expiring
    )
    return {"items": coupons.items, "next_cursor": coupons.next_cursor}


@api.get(
    "/v1/users/<user:user_id>/coupons/<coupon_no>",
    summary="One coupon with its history",
    responses={200: CouponHistoryAnswer},
)
@require("storefront")
@refuses("COUPON_NOT_FOUND")
def get_coupon(path: CouponPath) -> dict[str, Any]:
    """Another user's coupon is not found, like one that does not exist."""
    coupon = read_coupon(services(), checked_user(path.user_id), path_id(path.coupon_no, "COUPON_NOT_FOUND"))
    if coupon is None:
        raise NotFound("COUPON_NOT_FOUND", "this user has no coupon of that number")
    return coupon


@api.post(
    "/v1/users/<user:user_id>/coupons/<coupon_no>/transfer",
    summary="Give a coupon to another user",
    responses={201: CouponAnswer},
)
@require("storefront")
@refuses("COUPON_NOT_FOUND", "NOT_TRANSFERABLE", "EXPIRED", "COUPON_NOT_AVAILABLE")
@idempotent
def transfer(path: CouponPath, body: TransferBody) -> tuple[dict[str, Any], int]:
    """This coupon ends, and the receiver's new one is answered: the same worth, the same validity.

    Sent again, the same coupon is answered again. 409 `NOT_TRANSFERABLE`, `EXPIRED`, or `COUPON_NOT_AVAILABLE` with
    `coupon_status`, and `order_no` when an order has locked it.
    """
    user_id = checked_user(path.user_id)
    coupon_id = path_id(path.coupon_no, "COUPON_NOT_FOUND")
    wish = Transfer(user_id, coupon_id, body.to_user_id, to_coupon_id=subject_id())
    received = find_coupon(
        services(), body.to_user_id, transfer_coupon(services(), wish, operator=f"key:{principal().key_id}")
    )
    assert received is not None
    return received, 201


def checked_user(user_id: str) -> str:
    """The user of an address. Raises ``InvalidInput`` for one that cannot be."""
    problem = user_id_problem(user_id)
    if problem:
        raise InvalidInput([("user_id", problem)])
    return user_id
