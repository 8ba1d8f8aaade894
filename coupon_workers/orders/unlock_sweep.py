"""Locks past their deadline are let go, by an index, in small chunks that step around whatever is held (DESIGN 8).

The database holds the deadline: no message has to arrive in time, and a sweep that dies leaves the rest to the next.
"""

from __future__ import annotations

import time
from datetime import datetime
from functools import partial

from sqlalchemy import text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.orders.order_desk import in_order_transaction
from coupon_workers.orders.order_event import mark_tried, met_orders, refuse_late, settle_waiting
from coupon_workers.orders.release import DEADLINE, RELEASE
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.wallet.stale_wallet import forget_stale_wallets

log = get_logger(__name__)

CHUNK = 200
MOST = 5_000
"""Orders read at once for a turn, which ends before that many were tried."""

TURN_S = 5.0
"""A sweep ends after this, so that shut-downs are short; the next one comes in seconds."""

_OVERDUE = text(
    "WITH held AS (SELECT user_id, order_no, lock_no FROM coupon_order"
    " WHERE status = 'locked' AND locked_until <= :now ORDER BY locked_until LIMIT :chunk"
    f" FOR NO KEY UPDATE SKIP LOCKED){RELEASE}"
)


def release_overdue_locks(services: Services, *, turn_s: float = TURN_S) -> int:
    """Release every order whose lock has run out; how many. Raises ``StoreUnavailable``: what was done stays done."""
    ends = time.monotonic() + turn_s
    released = 0
    while True:
        now = services.clock()
        with transaction(services.engine) as connection:
            row = connection.execute(
                _OVERDUE,
                {"now": now, "chunk": CHUNK, "reason": "timeout", "operator": DEADLINE, "request_id": None},
            ).one()
        released += int(row.orders)
        forget_stale_wallets(services, row.users)
        if row.orders < CHUNK or time.monotonic() >= ends:
            return released


def settle_met_events(services: Services, *, turn_s: float = TURN_S) -> int:
    """Events that came at the same moment as what they wait for are settled; those that waited too long are refused.

    How many orders were looked at. Raises ``StoreUnavailable``: what was done stays done.
    """
    now = services.clock()
    _refuse_late_events(services, now, turn_s)
    ends = time.monotonic() + turn_s
    with transaction(services.engine) as connection:
        met = list(met_orders(connection, now, MOST))
    for number, (user_id, order_no) in enumerate(met, start=1):
        _settle_events_of(services, user_id, order_no)
        if time.monotonic() >= ends:
            return number
    return len(met)


def _settle_events_of(services: Services, user_id: str, order_no: str) -> None:
    try:
        in_order_transaction(services, user_id, partial(settle_waiting, user_id=user_id, order_no=order_no))
    except StoreUnavailable:
        raise
    except Exception:
        # An order whose books contradict one another must not keep the others waiting.
        log.exception("order_events_not_settled", order_no=order_no)
        with transaction(services.engine) as connection:
            mark_tried(connection, services.clock(), user_id, order_no)


def _refuse_late_events(services: Services, now: datetime, turn_s: float) -> None:
    """All of them: a feed that tells of every order, with coupons or without, has more in a pass than one chunk."""
    ends = time.monotonic() + turn_s
    while True:
        with transaction(services.engine) as connection:
            refused = refuse_late(connection, now, CHUNK)
        if refused < CHUNK or time.monotonic() >= ends:
            return
