"""One step of a batch's shard."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.campaigns.batch_run import run_step
from coupon_workers.errors import NotFound, StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)

AFTER_OTHERS = 20
"""Dramatiq's priority, 0 being the first: settling, the relay and deliveries come before."""


@dramatiq.actor(queue_name=Queue.CAMPAIGN.value, max_retries=0, priority=AFTER_OTHERS, throws=(NotFound,))
def issue_shard(batch_id: int, shard: int, cursor: int, pace: str = "") -> None:
    """Not retried: the sweep sends it again."""
    try:
        run_step(services(), batch_id, shard, cursor, pace)
    except StoreUnavailable as error:
        log.warning("step given up, the sweep sends it again", batch_id=batch_id, shard=shard, error=str(error))
