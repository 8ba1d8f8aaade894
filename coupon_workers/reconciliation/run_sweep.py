"""Runs whose message was lost, or whose worker died, are sent again."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import run_reconciliation

FORGOTTEN = timedelta(minutes=1)
"""A run that nobody has begun for so long has lost its message, or waits in a long queue: one more does no harm."""

BROKEN_OFF = timedelta(minutes=20)
"""Longer than a worker may take (``actors/run_reconciliation.py``): whoever began it is no more."""

AT_ONCE = 100

_OPEN = text("""
    SELECT run_id FROM recon_run
     WHERE status IN ('queued', 'running')
       AND coalesce(started_at + :broken_off, created_at + :forgotten) < :now
     ORDER BY created_at LIMIT :most
""")


def sweep_reconciliations(services: Services) -> int:
    """Send each forgotten run again; how many. Raises ``StoreUnavailable``."""
    named = {"now": services.clock(), "broken_off": BROKEN_OFF, "forgotten": FORGOTTEN, "most": AT_ONCE}
    with transaction(services.engine) as connection:
        forgotten = [row.run_id for row in connection.execute(_OPEN, named)]
    for run_id in forgotten:
        services.post.send(run_reconciliation(run_id))
    return len(forgotten)
