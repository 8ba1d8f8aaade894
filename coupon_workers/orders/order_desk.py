"""What the order centre does with coupons: each call one transaction, idempotent by its own number, for good.

Every function raises ``StoreUnavailable`` when PostgreSQL does not answer: nothing is known then, and the same call
may be sent again. ``operator`` says in the coupons' history who asked.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from coupon_workers.errors import Overtaken, StoreUnavailable
from coupon_workers.orders.lock import lock
from coupon_workers.orders.order_answer import order_answer, refund_answer
from coupon_workers.orders.order_change import OrderChange
from coupon_workers.orders.order_event import event_answer, settle_waiting, take_event
from coupon_workers.orders.order_request import EventBody, LockBody, QuoteBody, RedeemBody, RefundBody, ReleaseBody
from coupon_workers.orders.order_row import read_order, read_uses
from coupon_workers.orders.quote import quote
from coupon_workers.orders.redeem import redeem
from coupon_workers.orders.refund import refund
from coupon_workers.orders.release import release
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import database_errors, transaction
from coupon_workers.runtime.services import Services
from coupon_workers.wallet.stale_wallet import forget_stale_wallets

TRIES = 5
"""Each time a call is overtaken, another one of the same order has got ahead: callers of one order are few."""

Answer = dict[str, Any]
Result = TypeVar("Result")


def quote_order(services: Services, body: QuoteBody) -> Answer:
    """What coupons would take off the order. Raises ``NotFound`` ``COUPON_NOT_FOUND``."""
    with database_errors(), services.engine.connect() as connection:
        return quote(connection, services.clock(), body)


def lock_order(services: Services, order_no: str, body: LockBody, operator: str) -> Answer:
    """Lock coupons for the order; see ``orders/lock.py`` for what it raises."""
    return _change(
        services, body.user_id, order_no, lambda connection, now: lock(connection, now, order_no, body, operator)
    )


def redeem_order(services: Services, order_no: str, body: RedeemBody, operator: str) -> Answer:
    """Redeem the order's coupons; see ``orders/redeem.py`` for what it raises."""
    return _change(
        services, body.user_id, order_no, lambda connection, now: redeem(connection, now, order_no, body, operator)
    )


def release_order(services: Services, order_no: str, body: ReleaseBody, operator: str) -> Answer:
    """Let the order's coupons go; see ``orders/release.py`` for what it raises."""

    def work(connection: Connection, now: datetime) -> OrderChange:
        return release(connection, now, body.user_id, order_no, body.reason, operator)

    return _change(services, body.user_id, order_no, work)


def refund_order(services: Services, order_no: str, body: RefundBody, operator: str) -> Answer:
    """Return the order or a part of it; see ``orders/refund.py`` for what it raises."""
    row = in_order_transaction(
        services, body.user_id, lambda connection, now: refund(connection, now, order_no, body, operator)
    )
    return refund_answer(row)


def take_order_event(services: Services, body: EventBody) -> Answer:
    """Take an event of the order centre's feed; see ``orders/order_event.py``."""
    return event_answer(
        in_order_transaction(services, body.user_id, lambda connection, now: take_event(connection, now, body))
    )


def _change(
    services: Services, user_id: str, order_no: str, work: Callable[[Connection, datetime], OrderChange]
) -> Answer:
    def with_waiting_events(connection: Connection, now: datetime) -> Answer:
        change = work(connection, now)
        if change.awaited and settle_waiting(connection, now, user_id, order_no):
            after = read_order(connection, user_id, order_no) or change.order
            return order_answer(after, read_uses(connection, after))
        return order_answer(change.order, change.uses)

    return in_order_transaction(services, user_id, with_waiting_events)


def in_order_transaction(services: Services, user_id: str, work: Callable[[Connection, datetime], Result]) -> Result:
    """``work`` in one transaction, at one instant; begun again when another call of the order got ahead of it.

    The user's kept wallet is forgotten once it has committed.
    """
    broken: IntegrityError | None = None
    for _ in range(TRIES):
        try:
            with transaction(services.engine) as connection:
                result = work(connection, services.clock())
                crash_point("order.before_commit")
        except Overtaken:
            continue
        except IntegrityError as error:
            # Two first calls of an order insert its row both; whatever else breaks a key breaks it again.
            broken = error
            continue
        crash_point("order.after_commit")
        forget_stale_wallets(services, [user_id])
        return result
    if broken is not None:
        raise broken
    raise StoreUnavailable("PostgreSQL", "other calls of this order kept getting ahead")
