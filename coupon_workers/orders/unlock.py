"""An operator frees a locked coupon, with a reason: its order lets go of all that it holds, as it would by itself.

An order's coupons are locked and let go together; one alone would leave an order that does not hold what it says.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.coupons.transition import CouponStatus
from coupon_workers.errors import Conflict, NotFound, Overtaken
from coupon_workers.orders.order_desk import in_order_transaction
from coupon_workers.orders.order_row import Row, hold_coupons, hold_order, read_coupons, read_uses
from coupon_workers.orders.release import release_held
from coupon_workers.runtime.services import Services

_LATEST_WORD = text(
    "SELECT type FROM order_event WHERE user_id = :user_id AND order_no = :order_no AND occurred_at >= :locked_at"
    " ORDER BY occurred_at DESC LIMIT 1"
)
"""Of the order centre, since the order was locked."""


def unlock_coupon(
    services: Services, user_id: str, coupon_id: int, reason: str, operator: str, *, force: bool = False
) -> None:
    """Have the order that holds the coupon let go; one that is unused is left so.

    Without ``force`` only where the lock has run out or the order centre has closed the order. The order's payment, if
    it comes after all, locks anew what is still free, and is refused ``LOCK_EXPIRED`` otherwise. Raises ``NotFound``
    ``COUPON_NOT_FOUND``; ``Conflict`` ``COUPON_NOT_AVAILABLE`` with ``coupon_status``, ``LOCK_STANDS`` with
    ``order_no`` and ``locked_until``, ``LOCK_BROKEN`` where the order does not know of the lock,
    ``ORDER_BROKEN`` where it does not hold another of its coupons; ``StoreUnavailable``.
    """

    def work(connection: Connection, now: datetime) -> None:
        order_no = _holder(connection, user_id, coupon_id)
        if order_no is None:
            return
        order = hold_order(connection, user_id, order_no)
        coupon = _held(connection, user_id, order, coupon_id)
        if (coupon["status"], coupon["order_no"]) != (CouponStatus.LOCKED, order_no):
            raise Overtaken  # between the look and the hold
        if order is None or order["status"] != "locked":
            detail = "the order does not hold it: reconciliation of the state frees such a coupon"
            raise Conflict("LOCK_BROKEN", detail, order_no=order_no)
        if not force:
            _check_over(connection, order, now)
        release_held(connection, now, order, reason, operator)
        facts = {"user_id": user_id, "order_no": order_no, "reason": reason, "force": force}
        record(connection, AuditAction.COUPON_UNLOCK, f"coupon:{coupon_id}", after=facts)

    in_order_transaction(services, user_id, work)


def _holder(connection: Connection, user_id: str, coupon_id: int) -> str | None:
    """The order that has locked the coupon; None: it is unused."""
    found = read_coupons(connection, user_id, [coupon_id])
    if not found:
        raise NotFound("COUPON_NOT_FOUND", "this user has no coupon of that number")
    status = found[0]["status"]
    if status == CouponStatus.UNUSED:
        return None
    if status != CouponStatus.LOCKED:
        raise Conflict("COUPON_NOT_AVAILABLE", f"the coupon is {status}", coupon_status=status)
    return str(found[0]["order_no"])


def _held(connection: Connection, user_id: str, order: Row | None, coupon_id: int) -> Row:
    """The coupon, with all others of its order: held one after the other, two orders could come to wait for each
    other."""
    going = [use["coupon_id"] for use in read_uses(connection, order)] if order is not None else []
    coupons = hold_coupons(connection, user_id, [*going, coupon_id])
    return next(coupon for coupon in coupons if coupon["coupon_id"] == coupon_id)


def _check_over(connection: Connection, order: Row, now: datetime) -> None:
    if order["locked_until"] <= now:
        return
    named: dict[str, Any] = {name: order[name] for name in ("user_id", "order_no", "locked_at")}
    if connection.scalar(_LATEST_WORD, named) == "closed":
        return
    raise Conflict(
        "LOCK_STANDS",
        "the order may still be paid: force it, if it will not be",
        order_no=order["order_no"],
        locked_until=order["locked_until"],
    )
