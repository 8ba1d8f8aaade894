"""The doorbell of a template's bucket: drain its pending claims."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.claiming.settlement import drain
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue
from coupon_workers.runtime.work_meter import DRAIN_SIZE, observe

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.SETTLE.value, max_retries=0)
def settle_claims(template_id: int, bucket: int) -> None:
    """Settle until nothing is pending. Not retried: a bell that was not answered is rung again by the sweep."""
    try:
        observe(DRAIN_SIZE, [drain(services(), template_id, bucket)])
    except StoreUnavailable as error:
        log.warning("drain given up, the sweep rings again", template_id=template_id, error=str(error))
