"""Settle events of orders that came at the same moment as what they wait for."""

from __future__ import annotations

import dramatiq

from actors.pass_age import MAX_AGE_MS
from actors.process_services import services
from coupon_workers.errors import StoreUnavailable
from coupon_workers.orders.unlock_sweep import settle_met_events
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0, max_age=MAX_AGE_MS)
def settle_order_events() -> None:
    """One pass. Not retried: the next one comes within the minute."""
    try:
        settle_met_events(services())
    except StoreUnavailable as error:
        log.warning("order events left to the next pass", error=str(error))
