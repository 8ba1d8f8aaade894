"""End the unused coupons whose validity has passed."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.coupons.expiry import expire_coupons as expire
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0)
def expire_coupons() -> None:
    """One turn. Not retried: the next one comes in a minute. Messages that have piled up find nothing, at the cost of a
    look into an index; an age at which they are dropped would drop all of them where two hosts' clocks differ."""
    try:
        expire(services(), services().clock())
    except StoreUnavailable as error:
        log.warning("expiry sweep given up", error=str(error))
