"""The terms of use of a template's coupons: what they apply to, with what they combine, what a refund does.

Every part is optional; what is left out has the default of API.md.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.templates.field_type import DaysOrNone, ExternalId, ExternalIds, Flag, Priority, Words


class _Terms(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class IdFilter(_Terms):
    """Ids that are in and out. No ``include`` means all; ``exclude`` wins."""

    include: ExternalIds = []
    exclude: ExternalIds = []


class TemplateScope(_Terms):
    """Where a coupon applies: an empty list stands for everything."""

    products: IdFilter = IdFilter()
    categories: IdFilter = IdFilter()
    channels: Words = []
    user_tags: ExternalIds = []


class StackingRule(_Terms):
    """With what a coupon combines: ``exclusive`` is used alone; of one ``group`` at most one is used."""

    exclusive: Flag = False
    group: ExternalId | None = None
    priority: Priority = 100


class RefundRule(_Terms):
    """What the refund of an order does to its coupon."""

    return_: Literal["full_only", "never"] = Field(
        "full_only", alias="return", description="full_only: the coupon comes back once all is returned"
    )
    threshold: Literal["keep", "recheck"] = "keep"
    expired: Literal["expire", "extend"] = "expire"
    grace_days: DaysOrNone = Field(0, description="days a returned coupon is extended by, when it had expired")
