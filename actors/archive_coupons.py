"""Move coupons that ended long ago into the archive."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.coupons.archive import archive_coupons as archive
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0)
def archive_coupons() -> None:
    """One turn. Not retried: what is left goes tomorrow."""
    try:
        archive(services(), services().clock())
    except StoreUnavailable as error:
        log.warning("archiving given up", error=str(error))
