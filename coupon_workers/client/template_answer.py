"""Templates and approvals, as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from coupon_workers.client.coupon_word import CouponType


class TemplateStock(TypedDict):
    """The units of a template. `remaining` is the gate's when it is warmed, else what the database leaves."""

    total: int
    issued: int
    queued: int
    reserved: int
    remaining: int
    warmed: bool


class TemplateAnswer(TypedDict):
    """A template with its state. Every field of the request is there, so that the answer can be sent to PATCH."""

    template_no: str
    name: str
    type: CouponType
    currency: str
    amount: int | None
    percent_off: int | None
    max_discount: int | None
    pool: FaceValuePool | None
    threshold: int
    total_quantity: int
    per_user_limit: int | None
    per_user_daily_limit: int | None
    claim_start: str
    claim_end: str
    validity: FixedValidity | RelativeValidity
    timezone: str
    scope: TemplateScope
    stacking: StackingRule
    refund: RefundRule
    transferable: bool
    restock_on_revoke: bool
    notify: bool
    channels_claim: list[str]
    risk_policy: str | None
    approval_required: bool | None
    template_id: str
    status: Literal["draft", "pending_approval", "scheduled", "active", "paused", "ended", "offline", "archived"]
    stock: TemplateStock
    version: int
    created_at: str
    updated_at: str


class PreheatAnswer(TemplateAnswer):
    """The template, and how many of its coupons were counted into the gate."""

    coupons_loaded: int


class TemplateStats(TypedDict):
    """The way of a template's coupons: claimed, issued or rejected, used; and what the discounts have cost."""

    template_id: str
    total: int
    issued: int
    queued: int
    reserved: int
    rejected: dict[str, int]
    by_status: CouponCounts
    archived: int
    redeemed: int
    currency: str
    discount: int


class CouponCounts(TypedDict):
    """Coupons by status; an unused one past its validity counts as expired."""

    unused: int
    locked: int
    redeemed: int
    expired: int
    revoked: int
    transferred: int


class FieldChange(TypedDict):
    """A field that is to change."""

    field: str
    before: Any
    after: Any


class ApprovalAnswer(TypedDict):
    """A request for approval, and what became of it."""

    approval_id: str
    template_id: str
    template_name: str
    kind: Literal["publication", "change"]
    state: Literal["pending", "approved", "rejected", "withdrawn"]
    reasons: list[str]
    changes: list[FieldChange]
    currency: str
    cost_before: int | None
    cost_after: int | None
    budget: int | None
    asked_by: str | None
    asked_at: str
    decided_by: str | None
    decided_at: str | None
    comment: str | None


class RevocationAnswer(TypedDict):
    """A recall of a template's unused coupons."""

    revocation_id: str
    template_id: str
    status: Literal["running", "done"]
    reason: str
    revoked: int
    restocked: int
    locked: int
    passes: int
    asked_by: str
    created_at: str
    finished_at: str | None


class IdFilter(TypedDict):
    """Ids that are in and out. No `include` means all; `exclude` wins."""

    include: NotRequired[list[str]]
    exclude: NotRequired[list[str]]


class TemplateScope(TypedDict):
    """Where a coupon applies: an empty list stands for everything."""

    products: NotRequired[IdFilter]
    categories: NotRequired[IdFilter]
    channels: NotRequired[list[str]]
    user_tags: NotRequired[list[str]]


FixedValidity = TypedDict(
    "FixedValidity",
    {
        "mode": Literal["fixed"],
        "from": str,
        "to": str,
        "until_end_of_day": NotRequired[bool],
    },
)
"""From one instant to another, the same for every coupon, whenever it is issued.

With `until_end_of_day` to the end of the local day in which `to` lies."""


class RelativeValidity(TypedDict):
    """`days` local days long, beginning `start_after_days` local days after the issue. A local day later is the same
    wall-clock time on the next date, whatever daylight saving does in between. With `until_end_of_day` the coupon
    holds to the end of the local day in which its last instant would lie: never less than without."""

    mode: Literal["relative"]
    days: int
    start_after_days: NotRequired[int]
    until_end_of_day: NotRequired[bool]


class StackingRule(TypedDict):
    """With what a coupon combines: `exclusive` is used alone; of one `group` at most one is used."""

    exclusive: NotRequired[bool]
    group: NotRequired[str | None]
    priority: NotRequired[int]


RefundRule = TypedDict(
    "RefundRule",
    {
        "return": NotRequired[Literal["full_only", "never"]],
        "threshold": NotRequired[Literal["keep", "recheck"]],
        "expired": NotRequired[Literal["expire", "extend"]],
        "grace_days": NotRequired[int],
    },
)
"""What the refund of an order does to its coupon."""


class PoolTier(TypedDict):
    """Of all values a share by `weight`, from `min` to `max`."""

    min: int
    max: int
    weight: int


class FaceValuePool(TypedDict):
    """Exactly `total_quantity` face values from `min` to `max` minor units that sum to `budget`."""

    min: int
    max: int
    budget: int
    distribution: NotRequired[Literal["uniform", "normal", "tiered"]]
    tiers: NotRequired[list[PoolTier] | None]
