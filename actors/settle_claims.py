"""The doorbell of a template's bucket: drain its pending claims."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.claiming.settlement import drain
from coupon_workers.runtime.task import Queue


@dramatiq.actor(queue_name=Queue.SETTLE.value, max_retries=0)
def settle_claims(template_id: int, bucket: int) -> None:
    """Settle until nothing is pending. Not retried: a bell that was not answered is rung again by the sweep."""
    drain(services(), template_id, bucket)
