"""All that is forgotten, kind by kind: one that fails holds up no other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from coupon_workers.campaigns.batch_retention import forget_audiences
from coupon_workers.claiming.gate_retirement import retire_gates
from coupon_workers.claiming.set_aside_retention import forget_set_aside
from coupon_workers.notify.retention import forget_messages
from coupon_workers.orders.event_retention import forget_unknown_events
from coupon_workers.reconciliation.run_retention import forget_runs
from coupon_workers.reconciliation.statement_retention import forget_statements
from coupon_workers.risk.listing import forget_entries
from coupon_workers.risk.verdict_log import forget_verdicts
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.scheduling.history import prune_history

log = get_logger(__name__)


def _retire_gates(services: Services, _: datetime) -> object:
    return retire_gates(services)


KINDS: tuple[Callable[[Services, datetime], object], ...] = (
    prune_history,
    forget_messages,
    forget_unknown_events,
    forget_audiences,
    forget_runs,
    forget_statements,
    forget_verdicts,
    forget_entries,
    forget_set_aside,
    _retire_gates,
)


def forget_what_is_over(services: Services) -> None:
    """One pass over every kind. Safe to run twice, at once or after being broken off.

    Raises what the first kind that failed has raised, once the others are done; each failure is in the log.
    """
    failed: list[Exception] = []
    for kind in KINDS:
        try:
            kind(services, services.clock())
        except Exception as error:
            log.exception("not_forgotten", kind=kind.__name__)
            failed.append(error)
    if failed:
        raise failed[0]
