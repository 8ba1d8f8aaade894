"""Read a batch's audience, and start it if it is due."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.campaigns.batch_run import start_batch
from coupon_workers.campaigns.staging import stage_batch as stage
from coupon_workers.errors import NotFound, StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)

AFTER_OTHERS = 20
"""Dramatiq's priority, 0 being the first: settling, the relay and deliveries come before."""


@dramatiq.actor(
    queue_name=Queue.CAMPAIGN.value, max_retries=0, priority=AFTER_OTHERS, throws=(NotFound,), time_limit=3_600_000
)
def stage_batch(batch_id: int) -> None:
    """Not retried: the sweep sends it again."""
    try:
        stage(services(), batch_id)
        start_batch(services(), batch_id)
    except StoreUnavailable as error:
        log.warning("staging given up, the sweep begins again", batch_id=batch_id, error=str(error))
