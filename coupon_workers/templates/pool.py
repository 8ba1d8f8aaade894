"""The face values of a random-amount template: a budget that is shared out exactly (DESIGN 11)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.templates.field_type import MoneyMinor

Distribution = Literal["uniform", "normal", "tiered"]


class FaceValuePool(BaseModel):
    """Exactly ``total_quantity`` face values from ``min`` to ``max`` minor units that sum to ``budget``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    min: MoneyMinor
    max: MoneyMinor
    budget: MoneyMinor
    distribution: Distribution = Field("uniform", description="how the values lie between min and max")
