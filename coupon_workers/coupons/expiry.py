"""Ending coupons whose validity has passed: unused ones, in chunks that nobody waits for (DESIGN 7 and 10)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.coupons.move_sql import recorded
from coupon_workers.coupons.transition import FlowAction
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.pace import Lane, reserve
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import expire_coupons as expire_coupons_task
from coupon_workers.wallet.stale_wallet import forget_stale_wallets

CHUNK = 2_000
"""Coupons ended in one transaction: some fifty milliseconds of locks, on coupons that nobody can use any more. With 500
the same work takes a third longer."""

TURN_S = 5.0
"""A sweep hands over to a new message after this, so that shut-downs are short and others take turns."""

LONGEST_REST_MS = 1_000
"""While claims come a sweep keeps to a pace; it lasts so long only where many sweep at once."""

OPERATOR = "expiry"

_MOVED = f"""moved AS (
        UPDATE coupon AS c SET status = 'expired', version = c.version + 1, updated_at = :now
          FROM ended
         WHERE c.user_id = ended.user_id AND c.coupon_id = ended.coupon_id
           AND c.status IS NOT DISTINCT FROM 'unused'
        RETURNING c.user_id, c.coupon_id, c.template_id, c.version, old.status AS before_status, c.status, c.order_no
    ), {recorded(FlowAction.EXPIRE, "coupon.expired")}
    SELECT user_id FROM moved"""

_EXPIRE_ONE = text(f"""
    WITH ended AS MATERIALIZED (
        SELECT user_id, coupon_id FROM coupon
         WHERE user_id = :user_id AND coupon_id = :coupon_id AND status = 'unused' AND valid_to <= :now
           FOR NO KEY UPDATE
    ), {_MOVED}
""")

# A coupon that another transaction has in hand is left to it, or to the next sweep. With these settings, and a guard
# that the index of unused coupons does not serve, the UPDATE finds each coupon by its key, whatever the statistics say;
# else it may go through all coupons for each chunk. Nobody waits for the disk: a chunk that a crash of the server takes
# back was told to nobody (what tells commits after it, and the log is written in order), and the next sweep ends it.
_EXPIRE = text(f"""
    SET LOCAL synchronous_commit = off;
    SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off;
    SET LOCAL enable_material = off;
    SET LOCAL enable_seqscan = off;
    WITH ended AS MATERIALIZED (
        SELECT user_id, coupon_id FROM coupon
         WHERE status = 'unused' AND valid_to <= :now
         ORDER BY valid_to LIMIT :chunk FOR NO KEY UPDATE SKIP LOCKED
    ), {_MOVED}
""")

log = get_logger(__name__)


def expire_coupons(services: Services, now: datetime, *, turn_s: float = TURN_S) -> int:
    """End every unused coupon that was valid until ``now`` or earlier; returns how many.

    Locked coupons stay locked: a lock outlives the validity until its own deadline. Safe at any time, by any number of
    workers, and to be broken off: each chunk is a transaction. When the turn is over a follow-up message goes out.
    Raises ``StoreUnavailable``; the chunks before then are done.
    """
    turn_ends = time.monotonic() + turn_s
    expired = 0
    with ThreadPoolExecutor(1, thread_name_prefix="forget") as beside:
        while True:
            time.sleep(min(reserve(services, Lane.EXPIRY, CHUNK) or 0, LONGEST_REST_MS) / 1000)
            with transaction(services.engine) as connection:
                users = list(connection.scalars(_EXPIRE, _arguments(now)))
            # Redis forgets a chunk while PostgreSQL ends the next one.
            beside.submit(forget_stale_wallets, services, set(users))
            expired += len(users)
            if len(users) < CHUNK:
                break
            if time.monotonic() > turn_ends:
                services.post.send(expire_coupons_task())
                break
    if expired:
        log.info("coupons_expired", count=expired)
    return expired


def expire_one(connection: Connection, user_id: str, coupon_id: int, now: datetime) -> None:
    """End the coupon now, if it is unused and its validity has passed: for whoever does not wait for a sweep."""
    connection.execute(_EXPIRE_ONE, {"user_id": user_id, "coupon_id": coupon_id} | _arguments(now))


def _arguments(now: datetime) -> dict[str, Any]:
    return {"now": now, "chunk": CHUNK, "operator": OPERATOR, "request_id": None}
