"""Coupons and addresses of users, as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from coupon_workers.client.coupon_word import CouponSource, CouponStatus, CouponType


class CouponAnswer(TypedDict):
    """A coupon. Money is in minor units of `currency`; `amount` or `percent_off` by its type."""

    coupon_no: str
    template_id: str
    template_name: str
    user_id: str
    status: CouponStatus
    type: CouponType
    amount: NotRequired[int | None]
    percent_off: NotRequired[int | None]
    max_discount: int | None
    currency: str
    threshold: int
    valid_from: str
    valid_to: str
    source: CouponSource
    order_no: str | None
    issued_at: str
    locked_until: str | None


class FlowAnswer(TypedDict):
    """One step of a coupon's history."""

    flow_no: int
    action: str
    from_status: CouponStatus | None
    to_status: CouponStatus
    order_no: str | None
    operator: str
    request_id: str | None
    at: str


class CouponHistoryAnswer(CouponAnswer):
    """A coupon with all that happened to it, oldest first."""

    history: list[FlowAnswer]


class ContactAnswer(TypedDict):
    """A user's address for a channel."""

    user_id: str
    channel: str
    address: str
    updated_at: str


class ExchangeAnswer(CouponAnswer):
    """The coupon of a code; `replayed`: this user had it already."""

    replayed: bool
