"""Let go what unpaid orders hold past their deadline."""

from __future__ import annotations

import dramatiq

from actors.pass_age import MAX_AGE_MS
from actors.process_services import services
from coupon_workers.errors import StoreUnavailable
from coupon_workers.orders.unlock_sweep import release_overdue_locks as sweep
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0, max_age=MAX_AGE_MS)
def release_overdue_locks() -> None:
    """One pass. Not retried: the next one comes in seconds."""
    try:
        sweep(services())
    except StoreUnavailable as error:
        log.warning("unlock sweep given up", error=str(error))
