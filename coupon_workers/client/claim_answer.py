"""Claims as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from coupon_workers.client.coupon_word import CouponType


class ClaimAnswer(TypedDict):
    """An accepted claim (202), or the present status of one that was accepted before (200, `replayed`)."""

    claim_id: str
    status: Literal["queued", "issued", "rejected"]
    template_id: str
    user_id: str
    replayed: bool
    reason: NotRequired[str | None]


class BatchItem(TypedDict):
    """One claim of a batch: an accepted or replayed one with its id, a refused one with its code."""

    status: int
    claim_id: NotRequired[str | None]
    claim_status: NotRequired[Literal["queued", "issued", "rejected"] | None]
    replayed: NotRequired[bool | None]
    code: NotRequired[str | None]
    detail: NotRequired[str | None]


class ClaimStatusAnswer(TypedDict):
    """How a claim stands. `coupon_no` equals `claim_id` once it is issued."""

    claim_id: str
    status: Literal["queued", "issued", "rejected"]
    coupon_no: str | None
    template_id: str
    user_id: str | None
    reason: str | None
    queued_at: str
    settled_at: str | None


class OfferAnswer(TypedDict):
    """A template as this user finds it. `remaining` is rounded down; null while the template is made ready."""

    template_id: str
    name: str
    type: CouponType
    currency: str
    amount: int | None
    percent_off: int | None
    max_discount: int | None
    threshold: int
    state: Literal["claimable", "claimed", "sold_out", "not_started", "limit_reached"]
    claimed: int
    remaining: int | None
    starts_at: str
    ends_at: str


class CenterAnswer(TypedDict):
    """Active and coming templates, newest first, and the server's time."""

    items: list[OfferAnswer]
    next_cursor: str | None
    server_time: str


class ClaimBody(TypedDict):
    """A claim, as it is asked for."""

    template_id: str
    user_id: str
    request_id: str
    channel: NotRequired[str]
    device_id: NotRequired[str]
    ip: NotRequired[str]
    address_hash: NotRequired[str]
