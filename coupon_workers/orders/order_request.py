"""What the order centre asks: the bodies of quote, lock, redeem, release, refund and of its events (API.md, Orders).

All raise ``pydantic.ValidationError`` with all errors at once, each at its field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from coupon_workers.orders.order import MAX_COUPONS, MAX_LINES, OrderBody, OrderLine, OrderPart, UserId, broken_rules
from coupon_workers.templates.field_type import (
    MAX_EXACT,
    Currency,
    ExternalId,
    ExternalIds,
    Instant,
    Name,
    Quantity,
    Word,
)
from coupon_workers.templates.whole_body import every_error_at_once

LOCK_S = 900
SHORTEST_LOCK_S = 60
LONGEST_LOCK_S = 86_400


def _as_coupon_no(value: Any) -> int:
    """Decimal digits as a text, exactly as we spell them, or an integer that every JSON reader keeps exact."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and value[0] != "0" and len(value) <= 19:
        value, most = int(value), 2**63 - 1
    else:
        most = MAX_EXACT
    if type(value) is not int or not 1 <= value <= most:
        raise PydanticCustomError("coupon_no", "A coupon number is a text of its decimal digits")
    return value


def _each_once(coupon_nos: list[int]) -> list[int]:
    if len(set(coupon_nos)) != len(coupon_nos):
        raise PydanticCustomError("coupon_twice", "A coupon is listed twice")
    return coupon_nos


def _only_true(value: Any) -> Any:
    """To Python, and so to a literal, 1 and 1.0 are ``True`` too; an order is not returned whole on a number."""
    if value is not True:
        raise PydanticCustomError("full", "It is true, or left out")
    return value


CouponNo = Annotated[
    int,
    BeforeValidator(_as_coupon_no),
    WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]{0,18}$", "examples": ["653247040368672768"]}),
]
CouponNos = Annotated[list[CouponNo], Field(min_length=1, max_length=MAX_COUPONS), AfterValidator(_each_once)]
Everything = Annotated[Literal[True], BeforeValidator(_only_true)]
Lines = Annotated[list[OrderLine], Field(min_length=1, max_length=MAX_LINES)]

_ORDER_FIELDS = ("currency", "lines", "coupon_nos")


class QuoteBody(OrderBody):
    """An order, and the coupons to try on it; without ``coupon_nos`` the best of the user's wallet."""

    coupon_nos: CouponNos | None = Field(None, description="exactly these; absent: the best allowed combination")


class LockBody(OrderBody):
    """An order, the coupons it is to hold, and for how long."""

    coupon_nos: CouponNos
    ttl_seconds: Annotated[int, Field(strict=True, ge=SHORTEST_LOCK_S, le=LONGEST_LOCK_S)] = LOCK_S

    @cached_property
    def fingerprint(self) -> bytes:
        """SHA-256 of the order and its coupons, whatever the order in which tags and coupons are listed."""
        return fingerprint_of(self, self.coupon_nos)


class RedeemBody(OrderPart):
    """The payment of an order; with the order itself and its coupons it redeems without an earlier lock."""

    user_id: UserId
    payment_no: ExternalId
    paid_at: Instant | None = Field(None, description="when the buyer paid; absent: now")
    currency: Currency | None = None
    channel: Word | None = None
    user_tags: ExternalIds = Field([])
    lines: Lines | None = None
    coupon_nos: CouponNos | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _all_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return every_error_at_once(cls, data, handler, lambda known: _whole_or_absent(data, known.get("lines")))

    @property
    def order(self) -> OrderBody | None:
        """The order, when the body brings it."""
        if self.lines is None or self.currency is None:
            return None
        return OrderBody.model_construct(
            user_id=self.user_id,
            currency=self.currency,
            channel=self.channel,
            user_tags=self.user_tags,
            lines=self.lines,
        )


class ReleaseBody(OrderPart):
    """Why an order lets its coupons go."""

    user_id: UserId
    reason: Name


class RefundLine(OrderPart):
    """So many pieces of one line go back."""

    line_id: ExternalId
    quantity: Quantity


class RefundBody(OrderPart):
    """What goes back: pieces of lines, or with ``full`` everything that is left."""

    user_id: UserId
    refund_no: ExternalId
    lines: Annotated[list[RefundLine], Field(min_length=1, max_length=MAX_LINES)] | None = None
    full: Everything | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _all_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return every_error_at_once(cls, data, handler, lambda _: _one_of_two(data))


def _without_slash(order_no: str) -> str:
    if "/" in order_no:
        raise PydanticCustomError("order_no", "An order number has no slash: it is part of an address")
    return order_no


OrderNo = Annotated[ExternalId, AfterValidator(_without_slash)]


class EventBody(OrderPart):
    """What happened to an order. ``payment_no`` goes with ``paid``, ``reason`` with ``closed``, and ``refund_no`` and
    either ``lines`` or ``full`` with ``refunded``; where a number is left out, the event's id stands for it."""

    event_id: ExternalId
    order_no: OrderNo
    user_id: UserId
    type: Literal["paid", "closed", "refunded"]
    occurred_at: Instant
    payment_no: ExternalId | None = None
    reason: Name | None = None
    refund_no: ExternalId | None = None
    lines: Annotated[list[RefundLine], Field(min_length=1, max_length=MAX_LINES)] | None = None
    full: Everything | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _all_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return every_error_at_once(cls, data, handler, lambda _: _fields_of_type(data))


def fingerprint_of(order: OrderBody, coupon_nos: list[int]) -> bytes:
    """SHA-256 of an order and its coupons."""
    said = order.model_dump(mode="json", include=set(OrderBody.model_fields))
    said |= {"user_tags": sorted(order.user_tags), "coupon_nos": sorted(coupon_nos)}
    return digest(said)


def digest(said: Any) -> bytes:
    """SHA-256 of a JSON value, whatever the order of its members."""
    return sha256(json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).digest()


def _whole_or_absent(data: Any, lines: list[OrderLine] | None) -> Iterator[tuple[str, str]]:
    if not isinstance(data, dict):
        return
    given = [field for field in _ORDER_FIELDS if data.get(field) is not None]
    if given:
        for field in _ORDER_FIELDS:
            if field not in given:
                yield field, "An order that is redeemed without a lock is given whole, with its coupons"
        yield from broken_rules(data, lines)


def _one_of_two(data: Any) -> Iterator[tuple[str, str]]:
    if isinstance(data, dict) and (data.get("lines") is None) == (data.get("full") is None):
        yield "lines", "Give either lines, or full: true"


_OF_TYPE = {"paid": ("payment_no",), "closed": ("reason",), "refunded": ("refund_no", "lines", "full")}


def _fields_of_type(data: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(data, dict) or data.get("type") not in _OF_TYPE:
        return
    for kind, fields in _OF_TYPE.items():
        for field in fields:
            if kind != data["type"] and data.get(field) is not None:
                yield field, f"It belongs to an event of type {kind}"
    if data["type"] == "refunded":
        yield from _one_of_two(data)
