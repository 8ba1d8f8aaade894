"""Compare on schedule, write down what differs, repair what is safe."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.run import reconcile_due
from coupon_workers.runtime.clock import from_ms
from coupon_workers.runtime.task import Queue

TIME_LIMIT_MS = 900_000
"""Millions of coupons take minutes; PostgreSQL ends a statement before this."""


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=3, time_limit=TIME_LIMIT_MS)
def reconcile(kind: str, logical_at_ms: int) -> None:
    """The runs of a kind that belong to a logical instant, each once."""
    reconcile_due(services(), ReconKind(kind), from_ms(logical_at_ms))
