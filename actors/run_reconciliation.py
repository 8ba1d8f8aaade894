"""A reconciliation that somebody asked for."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.reconciliation.run import perform_run
from coupon_workers.runtime.task import Queue

TIME_LIMIT_MS = 900_000
"""Millions of coupons take minutes; PostgreSQL ends a statement before this."""


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=3, time_limit=TIME_LIMIT_MS)
def run_reconciliation(run_id: int) -> None:
    """The run, unless it has been done; then what of it is left to repair."""
    perform_run(services(), run_id)
