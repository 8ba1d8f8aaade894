"""Returning an order piece by piece: what is paid back, and how much of each coupon's discount is reversed.

What goes back for a piece is its list price less the discount that is reversed with it. Both add up by construction:
the discount that still lies on a line is split between the pieces returned now and those that are kept, in whole
units (a half rounded up), and the last piece takes what is left. However an order is returned, the refunds sum to
what was paid and the reversals to the discount; none is negative (DESIGN 3.7).

A coupon whose template says ``recheck`` asks for its threshold again: when the pieces kept no longer reach it, the
discount on them is withdrawn, out of what would be paid back now. What that does not cover is withdrawn from later
refunds: nobody is asked to pay more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import add, sub
from typing import Self

from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.orders.discount import Allocation
from coupon_workers.orders.money import allocate, half_up

Returned = Sequence[tuple[str, int]]
"""Line ids, each with the number of pieces that are returned."""
Table = tuple[tuple[int, ...], ...]
"""Amounts by line, then by coupon; minor units."""
Errors = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SoldLine:
    """A line as it was paid for."""

    line_id: str
    unit_price_minor: int
    quantity: int


@dataclass(frozen=True, slots=True)
class UsedCoupon:
    """A coupon as it was redeemed: ``allocations`` has every line it is for, as ``Applied`` has them."""

    coupon_id: int
    allocations: tuple[Allocation, ...]
    threshold_minor: int = 0
    recheck: bool = False


@dataclass(frozen=True, slots=True)
class LineRefund:
    """The part of one line: pieces, their list price, and the discount reversed. A line that is kept has no pieces
    here, and a reversal when a discount on it is withdrawn."""

    line_id: str
    quantity: int
    gross_minor: int
    discount_reversed_minor: int


@dataclass(frozen=True, slots=True)
class Refund:
    """One refund. ``amount_minor`` is the list price of what is returned less ``discount_reversed_minor``;
    ``by_coupon`` has each coupon's part of that, by its number."""

    amount_minor: int
    discount_reversed_minor: int
    lines: tuple[LineRefund, ...]
    by_coupon: dict[int, int]
    everything_returned: bool


@dataclass(frozen=True, slots=True)
class RefundBook:
    """What is left of an order to return: ``kept`` pieces of each line, and by line the discount of each coupon that
    is not reversed yet. Each refund leads to the next book; the refunds in their order lead to it again."""

    lines: tuple[SoldLine, ...]
    coupons: tuple[UsedCoupon, ...]
    kept: tuple[int, ...]
    discounts: Table

    @classmethod
    def of(cls, lines: Sequence[SoldLine], coupons: Sequence[UsedCoupon]) -> Self:
        """The book of an order of which nothing is returned yet."""
        shares = [{each.line_id: each.amount_minor for each in coupon.allocations} for coupon in coupons]
        discounts = tuple(tuple(share.get(line.line_id, 0) for share in shares) for line in lines)
        return cls(tuple(lines), tuple(coupons), tuple(line.quantity for line in lines), discounts)

    @property
    def payable_minor(self) -> int:
        """What has been paid for the pieces that are kept, and may still be paid back."""
        return _gross(self.lines, self.kept) - _sum(self.discounts)

    def refund(self, returned: Returned | None) -> tuple[Refund, Self]:
        """Return these pieces, or with None all that are left: the refund, and the book after it.

        Raises ``InvalidInput`` for an unknown or repeated line or a quantity that is not there, and ``Conflict``
        ``NOTHING_LEFT`` when everything has been returned before.
        """
        quantities = self._quantities(returned)
        going = tuple(self._reversal(line, quantity) for line, quantity in enumerate(quantities))
        kept = tuple(kept - quantity for kept, quantity in zip(self.kept, quantities, strict=True))
        after = replace(self, kept=kept, discounts=_each(sub, self.discounts, going))
        withdrawn = after._withdrawal(_gross(self.lines, quantities) - _sum(going))
        after = replace(after, discounts=_each(sub, after.discounts, withdrawn))
        return self._refund(quantities, _each(add, going, withdrawn), everything=not any(kept)), after

    def _quantities(self, returned: Returned | None) -> tuple[int, ...]:
        positions = {line.line_id: position for position, line in enumerate(self.lines)}
        if returned is not None:
            _refuse(_unfit(returned, positions))
        if not any(self.kept):
            raise Conflict("NOTHING_LEFT", "everything of this order has been returned")
        if returned is None:
            return self.kept
        _refuse(self._beyond(returned, positions))
        asked = dict(returned)
        return tuple(asked.get(line.line_id, 0) for line in self.lines)

    def _beyond(self, returned: Returned, positions: dict[str, int]) -> Errors:
        for place, (line_id, quantity) in enumerate(returned):
            kept = self.kept[positions[line_id]]
            if quantity > kept:
                yield f"lines.{place}.quantity", f"Only {kept} are left to return"

    def _reversal(self, line: int, quantity: int) -> tuple[int, ...]:
        """What of each coupon's discount on the line goes with so many of its pieces."""
        discounts = self.discounts[line]
        if quantity == 0:
            return (0,) * len(discounts)
        return tuple(allocate(half_up(sum(discounts) * quantity, self.kept[line]), discounts))

    def _withdrawal(self, at_most: int) -> Table:
        """What is withdrawn of the discounts on pieces kept, because their coupons' thresholds are not met by them."""
        failing = [coupon.recheck and self._reached(coupon) < coupon.threshold_minor for coupon in self.coupons]
        wanted = [
            discount if fails else 0
            for discounts in self.discounts
            for discount, fails in zip(discounts, failing, strict=True)
        ]
        shares = allocate(min(at_most, sum(wanted)), wanted)
        width = len(self.coupons)
        return tuple(tuple(shares[line * width : (line + 1) * width]) for line in range(len(self.lines)))

    def _reached(self, coupon: UsedCoupon) -> int:
        """The list price of what is kept of the coupon's lines."""
        lines = {allocation.line_id for allocation in coupon.allocations}
        return _gross(
            self.lines, [kept if line.line_id in lines else 0 for line, kept in zip(self.lines, self.kept, strict=True)]
        )

    def _refund(self, quantities: tuple[int, ...], reversed_: Table, *, everything: bool) -> Refund:
        lines = tuple(
            LineRefund(line.line_id, quantity, line.unit_price_minor * quantity, sum(discounts))
            for line, quantity, discounts in zip(self.lines, quantities, reversed_, strict=True)
            if quantity or any(discounts)
        )
        by_coupon = {
            coupon.coupon_id: sum(discounts[place] for discounts in reversed_)
            for place, coupon in enumerate(self.coupons)
        }
        discount = _sum(reversed_)
        return Refund(_gross(self.lines, quantities) - discount, discount, lines, by_coupon, everything)


def _unfit(returned: Returned, positions: dict[str, int]) -> Errors:
    seen: set[str] = set()
    for place, (line_id, quantity) in enumerate(returned):
        if line_id not in positions:
            yield f"lines.{place}.line_id", "The order has no such line"
        if line_id in seen:
            yield f"lines.{place}.line_id", "The line is given twice"
        if quantity < 1:
            yield f"lines.{place}.quantity", "It must be 1 or more"
        seen.add(line_id)
    if not returned:
        yield "lines", "Nothing is returned"


def _refuse(errors: Errors) -> None:
    found = list(errors)
    if found:
        raise InvalidInput(found)


def _gross(lines: Sequence[SoldLine], quantities: Sequence[int]) -> int:
    return sum(line.unit_price_minor * quantity for line, quantity in zip(lines, quantities, strict=True))


def _sum(table: Table) -> int:
    return sum(map(sum, table))


def _each(operation: Callable[[int, int], int], left: Table, right: Table) -> Table:
    return tuple(tuple(map(operation, *rows)) for rows in zip(left, right, strict=True))
