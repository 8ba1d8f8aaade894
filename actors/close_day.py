"""Close the books of the business day that has ended."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.finance.daily_close import close_due_day
from coupon_workers.runtime.clock import from_ms
from coupon_workers.runtime.task import Queue

TIME_LIMIT_MS = 900_000
"""A day of millions of coupons takes minutes; PostgreSQL ends the statement before this."""


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=5, time_limit=TIME_LIMIT_MS)
def close_day(logical_at_ms: int) -> None:
    """At most one day. A day that is closed, or was opened again by a person, is left as it is."""
    close_due_day(services(), from_ms(logical_at_ms))
