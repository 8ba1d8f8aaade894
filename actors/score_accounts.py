"""Have the shop's scorer say how risky the accounts are that are due."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.errors import StoreUnavailable
from coupon_workers.risk.score import score_due
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0)
def score_accounts() -> None:
    """One turn. Not retried: those that were not scored are due again in minutes."""
    try:
        score_due(services())
    except StoreUnavailable as error:
        log.warning("scoring given up", error=str(error))
