"""What a reading of the state has found so far: each coupon once, by the first class that says something of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from coupon_workers.reconciliation.difference import MOST, Difference
from coupon_workers.reconciliation.repair_name import RepairName


@dataclass
class StateCase:
    """``connection`` has a snapshot of the database; what is found is judged as of ``as_of``."""

    connection: Connection
    as_of: datetime
    differences: list[Difference] = field(default_factory=list)
    unjudged: set[str] = field(default_factory=set)
    _coupons: set[tuple[str, int]] = field(default_factory=set)
    _orders: set[tuple[str, str]] = field(default_factory=set)

    @property
    def room(self) -> int:
        """How many more may be found: one above what a run lists, so that it is known to be cut."""
        return max(0, MOST + 1 - len(self.differences))

    def knows_coupon(self, user_id: str, coupon_id: int) -> bool:
        """Whether something was said of the coupon."""
        return (user_id, coupon_id) in self._coupons

    def knows_order(self, user_id: str, order_no: str) -> bool:
        """Whether something was said of the order, or of a coupon on it."""
        return (user_id, order_no) in self._orders

    def add(self, difference: Difference) -> None:
        """Note a difference."""
        if not self.room:
            return
        self.differences.append(difference)
        if difference.user_id is not None and difference.coupon_id is not None:
            self._coupons.add((difference.user_id, difference.coupon_id))
        if difference.user_id is not None and difference.order_no is not None:
            self._orders.add((difference.user_id, difference.order_no))

    def add_coupon(self, finding_class: str, row: Any, repair: RepairName | None = None, **evidence: Any) -> None:
        """Note a difference of the coupon in ``row``: user_id, coupon_id, template_id and perhaps order_no."""
        self.add(
            Difference(
                finding_class=finding_class,
                subject=coupon_subject(row.user_id, row.coupon_id),
                evidence=evidence,
                repair=repair,
                template_id=row.template_id,
                user_id=row.user_id,
                order_no=getattr(row, "order_no", None),
                coupon_id=row.coupon_id,
            )
        )

    def add_order(self, finding_class: str, row: Any, repair: RepairName | None = None, **evidence: Any) -> None:
        """Note a difference of the order in ``row``: user_id and order_no."""
        self.add(
            Difference(
                finding_class=finding_class,
                subject=order_subject(row.user_id, row.order_no),
                evidence=evidence,
                repair=repair,
                user_id=row.user_id,
                order_no=row.order_no,
            )
        )


def coupon_subject(user_id: str, coupon_id: int) -> str:
    """How a difference names a coupon."""
    return f"coupon {coupon_id} user {user_id}"


def order_subject(user_id: str, order_no: str) -> str:
    """How a difference names an order: a number is one user's."""
    return f"order {order_no} user {user_id}"
