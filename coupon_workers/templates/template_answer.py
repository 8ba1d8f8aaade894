"""A template as it is answered (API.md, Templates): what was asked for, and what has become of it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.schema.coupon import COUPON_STATUSES
from coupon_workers.templates.field_type import Instant
from coupon_workers.templates.template import TemplateFields
from coupon_workers.templates.template_status import TemplateStatus

ID_EXAMPLE = "653247040368672768"


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)


class TemplateStock(_Answer):
    """The units of a template. ``remaining`` is the gate's when it is warmed, else what the database leaves."""

    total: int
    issued: int = Field(description="coupons in the database, without those whose units went back")
    queued: int = Field(description="claims accepted and not yet settled")
    reserved: int = Field(description="units kept for batches, codes and prizes")
    remaining: int = Field(description="units that may still be claimed")
    warmed: bool = Field(description="whether the gate is loaded and claims can be taken")


class TemplateAnswer(TemplateFields):
    """A template with its state. Every field of the request is there, so that the answer can be sent to PATCH."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    template_no: str
    # What was accepted once is answered, whatever the lists of currencies and time zones hold by then.
    currency: str
    timezone: str
    template_id: str = Field(examples=[ID_EXAMPLE])
    status: TemplateStatus = Field(description="scheduled, active and ended follow the clock")
    stock: TemplateStock
    version: int = Field(description="rises by one with every change")
    created_at: Instant
    updated_at: Instant


class TemplatePage(_Answer):
    """Templates, newest first."""

    items: list[TemplateAnswer]
    next_cursor: str | None = Field(description="to ask for the next page; null on the last")


class PreheatAnswer(TemplateAnswer):
    """The template, and how many of its coupons were counted into the gate."""

    coupons_loaded: int


class CouponCounts(_Answer):
    """Coupons by status; an unused one past its validity counts as expired."""

    unused: int = 0
    locked: int = 0
    redeemed: int = 0
    expired: int = 0
    revoked: int = 0
    transferred: int = 0


assert tuple(CouponCounts.model_fields) == COUPON_STATUSES


class TemplateStats(_Answer):
    """The way of a template's coupons: claimed, issued or rejected, used; and what the discounts have cost."""

    template_id: str = Field(examples=[ID_EXAMPLE])
    total: int
    issued: int
    queued: int
    reserved: int
    rejected: dict[str, int] = Field(description="claims that were accepted and not issued, by reason")
    by_status: CouponCounts = Field(description="coupons by status, archived ones left out")
    archived: int = Field(description="issued coupons that ended long ago and lie in the archive")
    redeemed: int
    currency: str
    discount: int = Field(description="minor units taken off orders, less what refunds took back")
