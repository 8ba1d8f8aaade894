"""Send recalls again that nobody goes on with."""

from __future__ import annotations

from datetime import timedelta

import dramatiq

from actors.process_services import services
from coupon_workers.coupons.revocation import sweep_revocations as sweep
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)

PATIENCE = timedelta(seconds=10)
"""Longer than a worker takes from one chunk to the next."""


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0)
def sweep_revocations() -> None:
    """One look. Not retried: the next one comes in seconds."""
    try:
        sweep(services(), services().clock() - PATIENCE)
    except StoreUnavailable as error:
        log.warning("sweep of recalls given up", error=str(error))
