"""A coupon template as it is asked for: the body of ``POST /v1/templates`` (API.md, Templates)."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, model_validator
from pydantic.config import JsonDict

from coupon_workers.templates import pool_rule  # noqa: F401 - its rules are asked with the others
from coupon_workers.templates.field_type import (
    BasisPoints,
    Currency,
    Flag,
    Instant,
    MoneyMinor,
    Name,
    Quantity,
    TemplateNo,
    Threshold,
    Timezone,
    Words,
)
from coupon_workers.templates.pool import FaceValuePool
from coupon_workers.templates.template_rule import broken_rules
from coupon_workers.templates.terms import RefundRule, StackingRule, TemplateScope
from coupon_workers.templates.validity import Validity
from coupon_workers.templates.whole_body import every_error_at_once

CouponType = Literal["amount_off", "percent_off", "cash", "random_amount"]

EXAMPLE: JsonDict = {
    "name": "20 off from 100",
    "type": "amount_off",
    "currency": "CNY",
    "amount": 2000,
    "threshold": 10000,
    "total_quantity": 1000,
    "per_user_limit": 1,
    "claim_start": "2026-11-11T00:00:00+08:00",
    "claim_end": "2026-11-12T00:00:00+08:00",
    "validity": {"mode": "relative", "days": 7, "until_end_of_day": True},
    "timezone": "Asia/Shanghai",
    "channels_claim": ["app", "h5"],
}
"""A body as it is published: 20.00 CNY off orders from 100.00."""


class TemplateFields(BaseModel):
    """The fields of a template that a client gives, with their bounds and defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    template_no: TemplateNo | None = Field(None, description="unique; made when it is left out")
    name: Name
    type: CouponType
    currency: Currency = Field(description="code of ISO 4217")
    amount: MoneyMinor | None = Field(None, description="amount_off, cash: minor units taken off")
    percent_off: BasisPoints | None = Field(None, description="percent_off: basis points taken off, 1500 is 15 %")
    max_discount: MoneyMinor | None = Field(None, description="percent_off: cap of the discount in minor units")
    pool: FaceValuePool | None = Field(None, description="random_amount: where face values come from")
    threshold: Threshold = Field(0, description="least eligible amount in minor units; 0 for none, as cash has it")
    total_quantity: Quantity
    per_user_limit: Quantity | None = Field(1, description="null: no limit; 1 when it is left out")
    per_user_daily_limit: Quantity | None = Field(None, description="per local day of the time zone; null: no limit")
    claim_start: Instant
    claim_end: Instant = Field(description="the first instant at which nothing can be claimed any more")
    validity: Validity
    timezone: Timezone = Field("Asia/Shanghai", description="IANA name: for days and ends of day")
    scope: TemplateScope = TemplateScope()
    stacking: StackingRule = StackingRule()
    refund: RefundRule = RefundRule()
    transferable: Flag = False
    restock_on_revoke: Flag = False
    notify: Flag = True
    channels_claim: Words = Field([], description="where it can be claimed; empty: everywhere")
    risk_policy: Name | None = None
    approval_required: Flag | None = None


class TemplateBody(TemplateFields):
    """A whole template: every field in its bounds, and the rules between fields kept.

    Raises ``pydantic.ValidationError`` with all broken fields and rules at once.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "description": "A whole template. All broken fields and rules are told at once.",
            "example": EXAMPLE,
        }
    )

    @model_validator(mode="wrap")
    @classmethod
    def _all_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return every_error_at_once(cls, data, handler, broken_rules)
