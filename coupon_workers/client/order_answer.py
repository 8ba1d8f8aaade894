"""Orders and their money, as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class AllocationAnswer(TypedDict):
    """The share of a discount that falls on one line, in minor units."""

    line_id: str
    amount: int


class AppliedAnswer(TypedDict):
    """A coupon that is used, and what it takes off."""

    coupon_no: str
    discount: int
    allocations: list[AllocationAnswer]


class RejectedAnswer(TypedDict):
    """A coupon that is not used; `shortfall` is what the eligible amount lacks of the threshold."""

    coupon_no: str
    code: str
    detail: str
    shortfall: int | None


class QuoteAnswer(TypedDict):
    """What coupons would take off; `exact`: no allowed combination takes more."""

    applied: list[AppliedAnswer]
    rejected: list[RejectedAnswer]
    subtotal: int
    discount: int
    payable: int
    exact: bool


class OrderAnswer(TypedDict):
    """An order with its coupons. Money is in minor units of `currency`."""

    order_no: str
    user_id: str
    status: Literal["locked", "released", "redeemed"]
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


class LineAnswer(TypedDict):
    """A line as it was when the coupons were locked."""

    line_id: str
    product_id: str
    category_id: str | None
    unit_price: int
    quantity: int


class RefundedLineAnswer(TypedDict):
    """So many pieces of a line."""

    line_id: str
    quantity: int


class RefundedCouponAnswer(TypedDict):
    """Where a coupon went with a refund."""

    coupon_no: str
    status: Literal["redeemed", "unused", "expired"]
    discount_reversed: int


class RefundAnswer(TypedDict):
    """A refund: what is paid back, and the discount that is taken back with it."""

    refund_no: str
    order_no: str
    refund_amount: int
    discount_reversed: int
    lines: list[RefundedLineAnswer]
    coupons: list[RefundedCouponAnswer]
    at: str


class WholeOrderAnswer(TypedDict):
    """An order with its lines and refunds."""

    order_no: str
    user_id: str
    status: Literal["locked", "released", "redeemed"]
    currency: str
    applied: list[UseAnswer]
    subtotal: int
    discount: int
    payable: int
    locked_until: str | None
    released_at: str | None
    payment_no: str | None
    paid_at: str | None
    redeemed_at: str | None
    channel: str | None
    lines: list[LineAnswer]
    release_reason: str | None
    refunded: int
    refunds: list[RefundAnswer]


class EventAnswer(TypedDict):
    """What became of an event; `code` says why it waits, was superseded or refused."""

    event_id: str
    order_no: str
    type: Literal["paid", "closed", "refunded"]
    state: Literal["waiting", "applied", "superseded", "refused"]
    code: str | None
    detail: str | None


class StatementRevision(TypedDict):
    """A statement as it was received. `fingerprint` is the SHA-256 of the file, in hex."""

    revision: int
    rows: int
    fingerprint: str
    received_at: str
    received_by: str


class DayStatement(StatementRevision):
    """The latest statement of a day."""

    date: str


class Statement(DayStatement):
    """The latest statement of a day, and the revisions that are kept, oldest first."""

    revisions: list[StatementRevision]


class OrderLine(TypedDict):
    """So many pieces of one product, each at its list price."""

    line_id: str
    product_id: str
    category_id: NotRequired[str | None]
    unit_price: int
    quantity: int


class OrderBody(TypedDict):
    """An order, as it is asked about."""

    user_id: str
    currency: str
    channel: NotRequired[str | None]
    user_tags: NotRequired[list[str]]
    lines: list[OrderLine]
