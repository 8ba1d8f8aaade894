"""Pass events of the outbox on, and wake the deliveries that are due."""

from __future__ import annotations

import dramatiq

from actors.pass_age import MAX_AGE_MS
from actors.process_services import services
from coupon_workers.errors import StoreUnavailable
from coupon_workers.notify.relay import relay_outbox as relay
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)

AFTER_OTHERS = 5
"""Dramatiq's priority, 0 being the first: settling comes before."""


@dramatiq.actor(queue_name=Queue.NOTIFY.value, max_retries=0, max_age=MAX_AGE_MS, priority=AFTER_OTHERS)
def relay_outbox() -> None:
    """One turn. Not retried: the next one comes in a second."""
    try:
        relay(services())
    except StoreUnavailable as error:
        log.warning("relay given up", error=str(error))
