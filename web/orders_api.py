"""Orders over HTTP (API.md, Orders): quote, lock, redeem, release, refund, and the order centre's feed."""

from __future__ import annotations

from typing import Any, Literal

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel

from coupon_workers.orders import order_desk as desk
from coupon_workers.orders.order import UserId
from coupon_workers.orders.order_reading import read_whole_order
from coupon_workers.orders.order_request import EventBody, LockBody, QuoteBody, RedeemBody, RefundBody, ReleaseBody
from coupon_workers.templates.field_type import ExternalId
from web.auth import require
from web.context import principal, services
from web.idempotent import idempotent
from web.problem_code import refuses
from web.query_model import QueryModel

api = APIBlueprint("orders", __name__, abp_tags=[Tag(name="Orders", description="Coupons on orders, and their money")])

Json = dict[str, Any]
Status = Literal["locked", "released", "redeemed"]

UNUSABLE = (
    "COUPON_NOT_FOUND",
    "COUPON_NOT_AVAILABLE",
    "LOCKED_BY_ORDER",
    "CURRENCY_MISMATCH",
    "NOT_YET_VALID",
    "EXPIRED",
    "SCOPE_MISMATCH",
    "THRESHOLD_NOT_MET",
    "STACKING_CONFLICT",
    "NOTHING_TO_DISCOUNT",
)
"""Why coupons cannot be put on an order."""


class OrderPath(BaseModel):
    """The order in the path."""

    order_no: ExternalId


class OrderQuery(QueryModel):
    """Whose order."""

    user_id: UserId


class AllocationAnswer(BaseModel):
    """The share of a discount that falls on one line, in minor units."""

    line_id: str
    amount: int


class AppliedAnswer(BaseModel):
    """A coupon that is used, and what it takes off."""

    coupon_no: str
    discount: int
    allocations: list[AllocationAnswer]


class RejectedAnswer(BaseModel):
    """A coupon that is not used; ``shortfall`` is what the eligible amount lacks of the threshold."""

    coupon_no: str
    code: str
    detail: str
    shortfall: int | None


class QuoteAnswer(BaseModel):
    """What coupons would take off; ``exact``: no allowed combination takes more."""

    applied: list[AppliedAnswer]
    rejected: list[RejectedAnswer]
    subtotal: int
    discount: int
    payable: int
    exact: bool


class OrderAnswer(BaseModel):
    """An order with its coupons. Money is in minor units of ``currency``."""

    order_no: str
    user_id: str
    status: Status
    currency: str
    applied: list[AppliedAnswer]
    subtotal: int
    discount: int
    payable: int
    locked_until: str | None
    released_at: str | None
    payment_no: str | None
    paid_at: str | None
    redeemed_at: str | None


class UseAnswer(AppliedAnswer):
    """A coupon on the order, and how much of its discount refunds have taken back."""

    state: Literal["locked", "redeemed", "released", "returned"]
    discount_reversed: int


class LineAnswer(BaseModel):
    """A line as it was when the coupons were locked."""

    line_id: str
    product_id: str
    category_id: str | None
    unit_price: int
    quantity: int


class RefundedLineAnswer(BaseModel):
    """So many pieces of a line."""

    line_id: str
    quantity: int


class RefundedCouponAnswer(BaseModel):
    """Where a coupon went with a refund."""

    coupon_no: str
    status: Literal["redeemed", "unused", "expired"]
    discount_reversed: int


class RefundAnswer(BaseModel):
    """A refund: what is paid back, and the discount that is taken back with it."""

    refund_no: str
    order_no: str
    refund_amount: int
    discount_reversed: int
    lines: list[RefundedLineAnswer]
    coupons: list[RefundedCouponAnswer]
    at: str


class WholeOrderAnswer(OrderAnswer):
    """An order with its lines and refunds."""

    applied: list[UseAnswer]  # type: ignore[assignment]  # a use is an applied coupon with two members more
    channel: str | None
    lines: list[LineAnswer]
    release_reason: str | None
    refunded: int
    refunds: list[RefundAnswer]


class EventAnswer(BaseModel):
    """What became of an event; ``code`` says why it waits, was superseded or refused."""

    event_id: str
    order_no: str
    type: Literal["paid", "closed", "refunded"]
    state: Literal["waiting", "applied", "superseded", "refused"]
    code: str | None
    detail: str | None


@api.post("/v1/quotes", summary="Quote an order", responses={200: QuoteAnswer})
@require("orders")
@refuses("COUPON_NOT_FOUND")
def post_quote(body: QuoteBody) -> Json:
    """A dry run: nothing is stored or held. With `coupon_nos` exactly these, without the best allowed combination of
    the user's wallet. 404 `COUPON_NOT_FOUND`."""
    return desk.quote_order(services(), body)


@api.post("/v1/orders/<order_no>/lock", summary="Lock coupons for an order", responses={200: OrderAnswer})
@require("orders")
@refuses(*UNUSABLE, "LOCKED_OTHERWISE", "ALREADY_REDEEMED", "ORDER_BROKEN")
@idempotent
def post_lock(path: OrderPath, body: LockBody) -> Json:
    """All or none, for `ttl_seconds`. The same order with the same coupons again re-enters its lock: the same answer.

    404 `COUPON_NOT_FOUND`; 409 `LOCKED_BY_ORDER` (with `order_no`), `COUPON_NOT_AVAILABLE` (with `coupon_status`),
    `EXPIRED`, `NOT_YET_VALID`, `THRESHOLD_NOT_MET` (with `shortfall`), `SCOPE_MISMATCH`, `CURRENCY_MISMATCH`,
    `STACKING_CONFLICT`, `NOTHING_TO_DISCOUNT`, `LOCKED_OTHERWISE`, `ALREADY_REDEEMED`, `ORDER_BROKEN`.
    """
    return desk.lock_order(services(), path.order_no, body, _operator())


@api.post("/v1/orders/<order_no>/redeem", summary="Redeem the coupons of a paid order", responses={200: OrderAnswer})
@require("orders")
@refuses(*UNUSABLE, "ORDER_NOT_FOUND", "LOCK_EXPIRED", "ALREADY_REDEEMED", "ORDER_DIFFERS", "ORDER_BROKEN")
@idempotent
def post_redeem(path: OrderPath, body: RedeemBody) -> Json:
    """The same payment again has the same answer. With a whole order and `coupon_nos` no lock is needed before.

    404 `ORDER_NOT_FOUND`; 409 `LOCK_EXPIRED` when the lock has run out and a coupon is gone, `ALREADY_REDEEMED` by
    another payment, `ORDER_DIFFERS`, `ORDER_BROKEN`; without a lock also the refusals of a lock.
    """
    return desk.redeem_order(services(), path.order_no, body, _operator())


@api.post("/v1/orders/<order_no>/release", summary="Let the coupons of an order go", responses={200: OrderAnswer})
@require("orders")
@refuses("ORDER_NOT_FOUND", "ALREADY_REDEEMED", "ORDER_BROKEN")
@idempotent
def post_release(path: OrderPath, body: ReleaseBody) -> Json:
    """The order will not be paid. Again: the same answer. 404 `ORDER_NOT_FOUND`; 409 `ALREADY_REDEEMED`,
    `ORDER_BROKEN`."""
    return desk.release_order(services(), path.order_no, body, _operator())


@api.post("/v1/orders/<order_no>/refunds", summary="Refund an order or a part of it", responses={200: RefundAnswer})
@require("orders")
@refuses("ORDER_NOT_FOUND", "NOT_REDEEMED", "NOTHING_LEFT", "ORDER_BROKEN")
@idempotent
def post_refund(path: OrderPath, body: RefundBody) -> Json:
    """`lines`, or `full` for all that is left. The same `refund_no` again has the same answer.

    404 `ORDER_NOT_FOUND`; 409 `NOT_REDEEMED`, `NOTHING_LEFT`, `ORDER_BROKEN`; 422 for a quantity above what is left.
    """
    return desk.refund_order(services(), path.order_no, body, _operator())


@api.get("/v1/orders/<order_no>", summary="Read an order", responses={200: WholeOrderAnswer})
@require("orders")
@refuses("ORDER_NOT_FOUND")
def get_order(path: OrderPath, query: OrderQuery) -> Json:
    """Its lines, coupons, allocations and refunds. 404 `ORDER_NOT_FOUND`, also for another user's order."""
    return read_whole_order(services(), query.user_id, path.order_no)


@api.post("/v1/order-events", summary="Tell what happened to an order", responses={200: EventAnswer})
@require("orders")
@idempotent
def post_event(body: EventBody) -> Json:
    """The order centre's feed: idempotent by `event_id`, in any order of arrival; the instants at which events
    occurred decide. `state` is `applied`, `superseded` by a later event, `refused` with a `code`, or `waiting` for an
    order or a payment that is not known yet, for a day, or for a broken order (`ORDER_BROKEN`) to be mended."""
    return desk.take_order_event(services(), body)


def _operator() -> str:
    return f"key:{principal().key_id}"
