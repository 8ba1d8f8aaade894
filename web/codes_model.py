"""Redeem codes as they are asked for over HTTP (API.md, codes)."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from coupon_workers.claiming.claim_request import REQUEST_ID_LENGTH, TEXT_LENGTH
from coupon_workers.codes.code_batch import LARGEST
from coupon_workers.codes.code_form import LONGEST, LONGEST_PREFIX, SHORTEST, CodeForm
from coupon_workers.orders.order import UserId
from coupon_workers.templates.field_type import Flag, Instant, Word
from web.batch_model import Identity

MOST_TYPED = 256
"""Characters of a code as it is typed: with spaces and dashes of any kind between them."""


def _prefix(value: Any) -> Any:
    return value.upper() if isinstance(value, str) and value.isascii() else value


def _printable(value: str) -> str:
    if not value.isprintable():
        raise PydanticCustomError("printable", "must be printable characters")
    return value


def _address(value: str) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise PydanticCustomError("ip", "must be an address of IPv4 or IPv6") from None


Typed = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=MOST_TYPED)]
RequestId = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=REQUEST_ID_LENGTH), AfterValidator(_printable)
]
DeviceId = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=TEXT_LENGTH), AfterValidator(_printable)
]
Address = Annotated[str, StringConstraints(strict=True, max_length=64), AfterValidator(_address)]
Prefix = Annotated[
    str,
    StringConstraints(strict=True, pattern=rf"^[A-Z0-9-]{{0,{LONGEST_PREFIX}}}$"),
    BeforeValidator(_prefix),
]


class CodeBatchBody(BaseModel):
    """So many codes of a template, each for one coupon."""

    model_config = ConfigDict(extra="forbid")

    template_id: Identity = Field(examples=["653247040368672768"])
    quantity: Annotated[int, Field(strict=True, ge=1, le=LARGEST)] = Field(examples=[1_000])
    length: Annotated[int, Field(strict=True, ge=SHORTEST, le=LONGEST)] = Field(
        12, description="characters behind the prefix, the check digit among them"
    )
    prefix: Prefix = Field("", description="capitals, digits and dashes; it shortens nothing")
    channel: Word | None = Field(None, description="the only one in which the codes hold; null: in all")
    check_digit: Flag = Field(True, description="the last character shows a typing error")
    expires_at: Instant | None = Field(None, description="when the codes end; null: with the template's claim_end")

    @property
    def form(self) -> CodeForm:
        """How the codes are made."""
        return CodeForm(self.length, self.prefix, self.check_digit)


class ExchangeBody(BaseModel):
    """A code in any spelling, and who tries it."""

    model_config = ConfigDict(extra="forbid")

    code: Typed = Field(examples=["K7WX-3MPD-9RTC"])
    user_id: UserId = Field(examples=["u-1001"])
    request_id: RequestId = Field(description="belongs to its user, and to one code", examples=["redeem-form-51"])
    ip: Address | None = Field(None, description="the customer's own; wrong codes are counted by it")
    device_id: DeviceId | None = Field(None, description="likewise")
    channel: Word | None = Field(None, description="where the customer is; codes may hold in one only")


class LookupBody(BaseModel):
    """A code in any spelling."""

    model_config = ConfigDict(extra="forbid")

    code: Typed = Field(examples=["K7WX-3MPD-9RTC"])
