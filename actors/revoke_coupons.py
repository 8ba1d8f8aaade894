"""Recall a template's unused coupons."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.coupons.revocation import perform_revocation
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=0)
def revoke_coupons(revocation_id: int) -> None:
    """One turn. Not retried: the sweep sends it again within seconds."""
    try:
        perform_revocation(services(), revocation_id)
    except StoreUnavailable as error:
        log.warning("recall broken off", revocation_id=revocation_id, error=str(error))
