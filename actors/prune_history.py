"""Delete books past their keeping time."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.campaigns.batch_retention import forget_audiences
from coupon_workers.claiming.gate_retirement import retire_gates
from coupon_workers.notify.retention import forget_messages
from coupon_workers.orders.event_retention import forget_unknown_events
from coupon_workers.reconciliation.run_retention import forget_runs
from coupon_workers.reconciliation.statement_retention import forget_statements
from coupon_workers.risk.listing import forget_entries
from coupon_workers.risk.verdict_log import forget_verdicts
from coupon_workers.runtime.task import Queue
from coupon_workers.scheduling.history import prune_history as prune


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=1, notify_shutdown=True)
def prune_history() -> None:
    """One pass over job runs, idempotency rows, events and deliveries, events of unknown orders, audiences of batches,
    reconciliations, statements long replaced, verdicts of risk rules, entries off their list, and the
    gates of templates long over."""
    prune(services(), services().clock())
    forget_messages(services(), services().clock())
    forget_unknown_events(services(), services().clock())
    forget_audiences(services(), services().clock())
    forget_runs(services(), services().clock())
    forget_statements(services(), services().clock())
    forget_verdicts(services(), services().clock())
    forget_entries(services(), services().clock())
    retire_gates(services())
