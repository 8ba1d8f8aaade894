"""The face values of a random-amount template: a budget that is shared out exactly (DESIGN 11)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.templates.field_type import MoneyMinor

Distribution = Literal["uniform", "normal", "tiered"]

MAX_POOL = 1_000_000
"""Values of one pool: each is loaded into Redis. More coupons than that take more than one template."""

MAX_TIERS = 20


class PoolTier(BaseModel):
    """Of all values a share by ``weight``, from ``min`` to ``max``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    min: MoneyMinor
    max: MoneyMinor
    weight: Annotated[int, Field(strict=True, ge=1, le=1_000_000)]


class FaceValuePool(BaseModel):
    """Exactly ``total_quantity`` face values from ``min`` to ``max`` minor units that sum to ``budget``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    min: MoneyMinor
    max: MoneyMinor
    budget: MoneyMinor
    distribution: Distribution = Field("uniform", description="how the values lie between min and max")
    tiers: Annotated[list[PoolTier], Field(min_length=1, max_length=MAX_TIERS)] | None = Field(
        None, description="tiered: ranges within min and max, ascending, each with its weight"
    )
