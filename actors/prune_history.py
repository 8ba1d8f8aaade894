"""Delete books past their keeping time."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.runtime.task import Queue
from coupon_workers.scheduling.forgetting import forget_what_is_over


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=1, notify_shutdown=True)
def prune_history() -> None:
    """One pass over job runs, idempotency rows, events and deliveries, events of unknown orders, audiences of batches,
    reconciliations, statements long replaced, verdicts of risk rules, entries off their list, entries that were set
    aside, and the gates of templates long over."""
    forget_what_is_over(services())
