"""A shop whose days are closed: coupons issued at the shop's own time, and a closed day in few words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.finance.adjustment import Adjustment, book_adjustment
from coupon_workers.finance.close_reading import DayClose, Sums
from coupon_workers.finance.daily_close import close_day, reopen_day
from coupon_workers.finance.ledger_reading import LedgerAnswer
from tests.support.order_shop import Json, OrderShop

CLERK = "clerk"

COUNTS = ("issued_count", "redeemed_count", "returned_count", "expired_count")
AMOUNTS = ("issued_amount", "redeemed_amount", "returned_amount", "expired_amount", "expense_net")

Brief = tuple[tuple[int, ...], tuple[int | None, ...]]


@dataclass
class ClosingShop(OrderShop):
    """An order shop with a clerk."""

    def at(self, instant: str) -> ClosingShop:
        """Move the clock to ``2026-11-11T12:00+08:00``."""
        self.clock.now = datetime.fromisoformat(instant)
        return self

    def issue(self, template_id: int, user: str | None = None, **columns: Any) -> int:
        """A coupon whose history begins at the shop's time."""
        coupon_id = super().issue(template_id, user, **columns)
        self.execute("UPDATE coupon_flow SET at = :now WHERE coupon_id = :id", now=self.clock.now, id=coupon_id)
        return coupon_id

    def buy(self, order: str, template_id: int, **more: Any) -> int:
        """A coupon of the template, issued and used at once."""
        coupon_id = self.issue(template_id)
        self.pay_directly(order, [coupon_id], payment=f"pay-{order}", **more)
        return coupon_id

    def adjust(self, reference: str, coupon_id: int, amount: int, order: str = "o1") -> LedgerAnswer:
        """Correct what a coupon cost on an order."""
        asked = Adjustment(
            reference=reference,
            user_id=self.user,
            order_no=order,
            coupon_id=coupon_id,
            amount_minor=amount,
            reason="a test",
        )
        return book_adjustment(self.services, asked, CLERK)

    def expire(self) -> int:
        """End what has ended."""
        return expire_coupons(self.services, self.clock.now)

    def close(self, day: str) -> DayClose:
        """Close a day."""
        return close_day(self.services, date.fromisoformat(day), CLERK)

    def reopen(self, day: str, reason: str = "late") -> DayClose:
        """Open it again."""
        return reopen_day(self.services, date.fromisoformat(day), CLERK, reason)


def brief(sums: Sums) -> Brief:
    """Counts, and amounts with the net expense."""
    return tuple(getattr(sums, name) for name in COUNTS), tuple(getattr(sums, name) for name in AMOUNTS)


def by_template(closed: DayClose) -> dict[int, Brief]:
    """The rows in brief."""
    return {int(row.template_id): brief(row) for row in closed.rows}


def cart(amount: int) -> list[Json]:
    """One line of this price."""
    return [{"line_id": "1", "product_id": "p1", "category_id": "c1", "unit_price": amount, "quantity": 1}]
