"""Generate the codes of a batch."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.codes.code_generation import run_generation
from coupon_workers.errors import Conflict, StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)

AFTER_OTHERS = 20
"""Dramatiq's priority, 0 being the first: settling, the relay and deliveries come before."""


@dramatiq.actor(queue_name=Queue.CAMPAIGN.value, max_retries=0, priority=AFTER_OTHERS)
def generate_codes(code_batch_id: int) -> None:
    """One turn. Not retried: the sweep sends it again."""
    try:
        run_generation(services(), code_batch_id)
    except (Conflict, StoreUnavailable) as error:
        log.warning("generation given up, the sweep sends it again", code_batch_id=code_batch_id, error=str(error))
