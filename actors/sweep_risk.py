"""Look after risk control: overdue reviews, lists and scores that gates have missed, their logs of refusals."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.errors import StoreUnavailable
from coupon_workers.risk.sweep import sweep_risk as sweep
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0)
def sweep_risk() -> None:
    """One look. Not retried: the next one comes in seconds."""
    try:
        sweep(services())
    except StoreUnavailable as error:
        log.warning("sweep of risk control given up", error=str(error))
