"""What orders in small consist of: coupons, orders, events, and the calls that change them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tests.support.order_sums import Cart, Shares, Terms, total

Answer = tuple[Any, ...]
Lines = tuple[tuple[str, int], ...]
"""Line and pieces of a return."""

UNMET = "UNMET"
"""The code of an event that waits for its order, or for its payment."""


class RefusedError(Exception):
    """The model says no, for ``code``."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Call(NamedTuple):
    """A call of the service: a method of ``OrderModel`` and of ``OrderCaller``, and its arguments by name."""

    name: str
    arguments: dict[str, Any]


@dataclass
class Coupon:
    """A coupon of a user. ``order``: who holds or has used it. ``becomes``: the receiver and his coupon."""

    number: int
    owner: str
    terms: Terms
    valid_from: datetime
    valid_to: datetime
    status: str = "unused"
    order: str | None = None
    becomes: tuple[str, int] | None = None


@dataclass
class Order:
    """An order, with the shares of its last lock and what of them is not reversed."""

    number: str
    cart: Cart
    coupons: frozenset[int]
    shares: Shares
    left: Shares
    kept: dict[str, int]
    status: str = "locked"
    locked_at: datetime | None = None
    until: datetime | None = None
    let_go_at: datetime | None = None
    payment: str | None = None
    paid_at: datetime | None = None
    refunded: int = 0

    @property
    def subtotal(self) -> int:
        """At list price."""
        return sum(line.amount for line in self.cart)

    @property
    def payable(self) -> int:
        """What the buyer pays."""
        return self.subtotal - total(self.shares)

    @property
    def returned(self) -> bool:
        """Whether nothing is left of it."""
        return not any(self.kept.values())


@dataclass
class Event:
    """What the order centre told, and what became of it."""

    said: dict[str, Any]
    tried_at: datetime
    arrival: int
    state: str = "waiting"
    code: str | None = None
