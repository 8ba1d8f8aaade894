"""Look after reconciliations that were asked for and forgotten."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.errors import StoreUnavailable
from coupon_workers.reconciliation.run_sweep import sweep_reconciliations as sweep
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0)
def sweep_reconciliations() -> None:
    """One pass. Not retried: the next one comes in a minute."""
    try:
        sweep(services())
    except StoreUnavailable as error:
        log.warning("sweep of reconciliations given up", error=str(error))
