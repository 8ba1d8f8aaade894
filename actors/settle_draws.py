"""The doorbell of a lottery: drain its pending draws."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.draw_settlement import drain_draws
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.SETTLE.value, max_retries=0)
def settle_draws(lottery_id: int) -> None:
    """Settle until nothing is pending. Not retried: a bell that was not answered is rung again by the sweep."""
    try:
        drain_draws(services(), lottery_id)
    except StoreUnavailable as error:
        log.warning("drain given up, the sweep rings again", lottery_id=lottery_id, error=str(error))
