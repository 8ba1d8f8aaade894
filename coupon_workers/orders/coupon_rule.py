"""The rule of one coupon, as frozen at its issue: all that the engine asks of it, and nothing of storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from coupon_workers.templates.template import CouponType


@dataclass(frozen=True, slots=True)
class IdSet:
    """Ids that are in and out. An empty ``include`` means all; ``exclude`` wins (API.md, Templates)."""

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()

    def holds(self, identity: str | None) -> bool:
        """Whether ``identity`` is in; what has no identity is on no list."""
        return identity not in self.exclude and (not self.include or identity in self.include)


EVERY_ID = IdSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class CouponRule:
    """What a coupon takes off, from what, when, and beside which others.

    ``amount_minor`` belongs to every type but ``percent_off``, which has ``percent_off_bp`` (basis points of the
    amount left) and perhaps a cap. ``threshold_minor`` is held against the list price of the eligible lines, before
    any coupon. Windows are half-open. Of one ``group`` at most one coupon is used; an ``exclusive`` one is used alone.
    """

    coupon_id: int
    template_id: int
    type: CouponType
    currency: str
    amount_minor: int | None = None
    percent_off_bp: int | None = None
    max_discount_minor: int | None = None
    threshold_minor: int = 0
    products: IdSet = EVERY_ID
    categories: IdSet = EVERY_ID
    channels: frozenset[str] = frozenset()
    user_tags: frozenset[str] = frozenset()
    exclusive: bool = False
    group: str | None = None
    priority: int = 100
    valid_from: datetime
    valid_to: datetime

    def __post_init__(self) -> None:
        value, other = self.percent_off_bp, self.amount_minor
        if self.type != "percent_off":
            value, other = other, value
        if value is None or value < 1 or other is not None:
            raise ValueError(f"coupon {self.coupon_id} has no value of its type {self.type}")

    @property
    def turn(self) -> tuple[int, int, int, datetime, int]:
        """Sorts coupons in the order in which they are applied: lower ``priority`` first, then by template.

        A template's coupons stand together, larger face values first, then the earliest end. When a user came by a
        coupon decides last, so that the same templates give every user the same discount.
        """
        return self.priority, self.template_id, -(self.amount_minor or 0), self.valid_to, self.coupon_id

    def conflicts(self, other: CouponRule) -> bool:
        """Whether the two may not be used in one order."""
        return self.exclusive or other.exclusive or (self.group is not None and self.group == other.group)


def rule_of(template: Mapping[str, Any], coupon: Mapping[str, Any]) -> CouponRule:
    """The rule of a coupon, from the columns of ``coupon_template`` and of ``coupon``.

    A coupon's own ``face_value_minor`` goes before its template's amount. Raises ``ValueError`` for a coupon without
    a value, as a random amount that was never drawn.
    """
    scope, stacking = template["scope"], template["stacking"]
    percent = template["type"] == "percent_off"
    face_value = coupon["face_value_minor"]
    return CouponRule(
        coupon_id=coupon["coupon_id"],
        template_id=template["template_id"],
        type=template["type"],
        currency=template["currency"],
        amount_minor=None if percent else template["amount_minor"] if face_value is None else face_value,
        percent_off_bp=template["percent_off_bp"],
        max_discount_minor=template["max_discount_minor"],
        threshold_minor=template["threshold_minor"],
        products=_ids(scope["products"]),
        categories=_ids(scope["categories"]),
        channels=frozenset(scope["channels"]),
        user_tags=frozenset(scope["user_tags"]),
        exclusive=stacking["exclusive"],
        group=stacking["group"],
        priority=stacking["priority"],
        valid_from=coupon["valid_from"],
        valid_to=coupon["valid_to"],
    )


def _ids(terms: Mapping[str, Any]) -> IdSet:
    return IdSet(frozenset(terms["include"]), frozenset(terms["exclude"]))
