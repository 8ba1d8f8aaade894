"""Look after the gates: forgotten bells, cold templates, changes that did not arrive."""

from __future__ import annotations

import dramatiq

from actors.pass_age import MAX_AGE_MS
from actors.process_services import services, waiting_bells
from coupon_workers.claiming.gate_sweep import sweep_gates as sweep
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0, max_age=MAX_AGE_MS)
def sweep_gates() -> None:
    """One pass. Not retried: the next one comes in seconds."""
    try:
        sweep(services(), waiting_bells())
    except StoreUnavailable as error:
        log.warning("sweep given up", error=str(error))
