"""An order as the order centre sends it (API.md, Orders): its lines at list price, in integers of one currency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from coupon_workers.claiming.claim_request import USER_ID_LENGTH, user_id_problem
from coupon_workers.templates.field_type import MAX_EXACT, Currency, ExternalId, ExternalIds, Quantity, Word
from coupon_workers.templates.whole_body import every_error_at_once

MAX_LINES = 1_000
MAX_COUPONS = 50
"""Coupons that one order may name."""


def _as_user(value: Any) -> Any:
    """An integer is read as its decimal text, as claims read it (API.md, Conventions)."""
    return str(value) if type(value) is int and abs(value) <= MAX_EXACT else value


def _visible(value: str) -> str:
    problem = user_id_problem(value)
    if problem:
        raise PydanticCustomError("user_id", "{problem}", {"problem": problem})
    return value


UserId = Annotated[
    str,
    StringConstraints(strict=True, min_length=1, max_length=USER_ID_LENGTH),
    BeforeValidator(_as_user),
    AfterValidator(_visible),
]
UnitPrice = Annotated[int, Field(strict=True, ge=0, le=MAX_EXACT, description="minor units for one piece")]


class OrderPart(BaseModel):
    """What all bodies of orders share: no unknown fields, no guessing of types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class OrderLine(OrderPart):
    """So many pieces of one product, each at its list price."""

    line_id: ExternalId
    product_id: ExternalId
    category_id: ExternalId | None = None
    unit_price: UnitPrice
    quantity: Quantity

    @property
    def amount_minor(self) -> int:
        """What the line costs before any coupon."""
        return self.unit_price * self.quantity


class OrderBody(OrderPart):
    """A whole order: every field in its bounds, line ids unique, totals exact in any JSON reader.

    Raises ``pydantic.ValidationError`` with all errors at once, each at its field.
    """

    user_id: UserId
    currency: Currency = Field(description="code of ISO 4217")
    channel: Word | None = Field(None, description="where the order is placed; a coupon bound to channels asks for it")
    user_tags: ExternalIds = Field([], description="what the shop knows of the user; coupons may ask for one of them")
    lines: Annotated[list[OrderLine], Field(min_length=1, max_length=MAX_LINES)]

    @property
    def subtotal_minor(self) -> int:
        """What all lines cost before any coupon."""
        return sum(line.amount_minor for line in self.lines)

    @model_validator(mode="wrap")
    @classmethod
    def _all_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return every_error_at_once(cls, data, handler, lambda known: broken_rules(data, known.get("lines")))


def broken_rules(data: Any, lines: list[OrderLine] | None = None) -> Iterator[tuple[str, str]]:
    """The fields of an order's lines that break a rule between them, and how, whatever else is wrong.

    ``lines``: those of ``data``, when all of them are well formed.
    """
    first: dict[str, int] = {}
    total = 0
    for position, line in _well_formed_lines(data) if lines is None else enumerate(lines):
        known = first.setdefault(line.line_id, position)
        if known != position:
            yield f"lines.{position}.line_id", f"It is the same as lines.{known}.line_id: each line has its own"
        if line.amount_minor > MAX_EXACT:
            yield f"lines.{position}.unit_price", "unit_price × quantity must stay below 2^53"
        total += line.amount_minor
    if total > MAX_EXACT:
        yield "lines", "The sum of unit_price × quantity must stay below 2^53"


def _well_formed_lines(data: Any) -> Iterator[tuple[int, OrderLine]]:
    lines = data.get("lines") if isinstance(data, Mapping) else None
    for position, line in enumerate(lines[:MAX_LINES] if isinstance(lines, list) else ()):
        try:
            yield position, OrderLine.model_validate(line)
        except ValidationError:
            continue
