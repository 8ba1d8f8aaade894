"""What may happen to an order, as steps of calls: the calls of a step are under way at the same time.

Every story ends with its coupon in a status that is known beforehand, whatever breaks meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from coupon_workers.load.order_call import GOOD
from coupon_workers.runtime.clock import rfc3339

LINES = (
    {"line_id": "1", "product_id": "p9", "category_id": "c1", "unit_price": 12_000, "quantity": 1},
    {"line_id": "2", "product_id": "p4", "category_id": "c2", "unit_price": 3_000, "quantity": 2},
)

ONE_OF_TWO = frozenset({200, 409})
"""Two want what only one can have."""

Call = tuple[str, str, Mapping[str, Any], frozenset[int]]
"""Name, target, body, allowed statuses."""
Steps = list[list[Call]]


@dataclass(frozen=True, slots=True)
class Buyer:
    """Who orders, with which coupon, under which number, and when he began."""

    user_id: str
    coupon_no: str
    order_no: str
    began: datetime

    def lock(self, order_no: str | None = None, allowed: frozenset[int] = GOOD) -> Call:
        """Lock the coupon for the order, or for another one."""
        return "lock", self._at("lock", order_no), self.order | {"coupon_nos": [self.coupon_no]}, allowed

    def pay(self) -> Call:
        """Redeem by the order's payment."""
        return "redeem", self._at("redeem"), self._user | {"payment_no": f"pay-{self.order_no}"}, GOOD

    def pay_directly(self) -> Call:
        """Redeem without a lock."""
        body = self.order | {"coupon_nos": [self.coupon_no], "payment_no": f"pay-{self.order_no}"}
        return "redeem", self._at("redeem"), body, GOOD

    def release(self, order_no: str | None = None, allowed: frozenset[int] = GOOD) -> Call:
        """Let the coupon go."""
        return "release", self._at("release", order_no), self._user | {"reason": "buyer"}, allowed

    def refund(self, number: int, lines: list[tuple[str, int]] | None, allowed: frozenset[int] = GOOD) -> Call:
        """Return pieces of lines, or with None everything that is left."""
        what: dict[str, Any] = {"full": True}
        if lines is not None:
            what = {"lines": [{"line_id": line_id, "quantity": quantity} for line_id, quantity in lines]}
        body = self._user | {"refund_no": f"ref-{self.order_no}-{number}"} | what
        return "refund", self._at("refunds"), body, allowed

    def event(self, kind: str, *, after_s: int) -> Call:
        """Tell that something happened so long after the order began."""
        body = self._user | {
            "event_id": f"{kind}-{self.order_no}",
            "order_no": self.order_no,
            "type": kind,
            "occurred_at": rfc3339(self.began + timedelta(seconds=after_s)),
        }
        return f"event {kind}", "/v1/order-events", body, GOOD

    @property
    def order(self) -> dict[str, Any]:
        """The order's body."""
        return self._user | {"currency": "CNY", "channel": "app", "lines": LINES}

    @property
    def _user(self) -> dict[str, Any]:
        return {"user_id": self.user_id}

    def _at(self, call: str, order_no: str | None = None) -> str:
        return f"/v1/orders/{order_no or self.order_no}/{call}"


def _paid(buyer: Buyer) -> Steps:
    return [[buyer.lock()], [buyer.pay()]]


def _paid_directly(buyer: Buyer) -> Steps:
    return [[buyer.pay_directly()]]


def _paid_by_the_feed(buyer: Buyer) -> Steps:
    return [[buyer.lock()], [buyer.event("paid", after_s=1)]]


def _cancelled(buyer: Buyer) -> Steps:
    return [[buyer.lock()], [buyer.release()]]


def _cancelled_then_paid(buyer: Buyer) -> Steps:
    return [[buyer.lock()], [buyer.release()], [buyer.lock()], [buyer.pay()]]


def _returned(buyer: Buyer) -> Steps:
    return [[buyer.lock()], [buyer.pay()], [buyer.refund(1, None)]]


def _returned_by_line(buyer: Buyer) -> Steps:
    return [[buyer.lock()], [buyer.pay()], [buyer.refund(1, [("2", 1)])], [buyer.refund(2, [("1", 1), ("2", 1)])]]


def _returned_twice_at_once(buyer: Buyer) -> Steps:
    both = [buyer.refund(1, None, ONE_OF_TWO), buyer.refund(2, None, ONE_OF_TWO)]
    return [[buyer.lock()], [buyer.pay()], both]


def _paid_and_closed_at_once(buyer: Buyer) -> Steps:
    """Whichever is heard first, the order was closed after it was paid."""
    return [[buyer.lock()], [buyer.event("closed", after_s=2), buyer.event("paid", after_s=1)]]


def _fought_over(buyer: Buyer) -> Steps:
    """Two orders want the coupon at once; then both are cancelled, of which one may not be known."""
    other = f"{buyer.order_no}-rival"
    known_or_not = frozenset({200, 404})
    return [
        [buyer.lock(allowed=ONE_OF_TWO), buyer.lock(other, ONE_OF_TWO)],
        [buyer.release(allowed=known_or_not), buyer.release(other, known_or_not)],
    ]


@dataclass(frozen=True, slots=True)
class Story:
    """How likely it is, what it asks, and where it leaves the coupon."""

    name: str
    weight: int
    steps: Callable[[Buyer], Steps]
    ends: str


STORIES = (
    Story("paid", 10, _paid, "redeemed"),
    Story("paid directly", 4, _paid_directly, "redeemed"),
    Story("paid by the feed", 4, _paid_by_the_feed, "redeemed"),
    Story("cancelled, then paid", 4, _cancelled_then_paid, "redeemed"),
    Story("cancelled", 20, _cancelled, "unused"),
    Story("returned", 14, _returned, "unused"),
    Story("returned by line", 14, _returned_by_line, "unused"),
    Story("returned twice at once", 8, _returned_twice_at_once, "unused"),
    Story("paid and closed at once", 10, _paid_and_closed_at_once, "unused"),
    Story("fought over", 12, _fought_over, "unused"),
)
