"""Tell users of the coupons that will end soon."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.coupons.expiry_notice import warn_of_expiry as warn
from coupon_workers.runtime.clock import from_ms
from coupon_workers.runtime.task import Queue


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=5, notify_shutdown=True)
def warn_of_expiry(logical_at_ms: int) -> None:
    """The coupons of one hour. Tried again: no other run looks at them."""
    warn(services(), from_ms(logical_at_ms), services().clock())
