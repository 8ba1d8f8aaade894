"""Runs whose message was lost, or whose worker died, are sent again; also one that died before its repairs."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from coupon_workers.reconciliation.repair import WAITS_FOR_REPAIR
from coupon_workers.reconciliation.repair_name import AUTOMATIC
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import run_reconciliation

FORGOTTEN = timedelta(minutes=1)
"""A run that nobody has begun for so long has lost its message, or waits in a long queue: one more does no harm."""

BROKEN_OFF = timedelta(minutes=20)
"""Longer than a worker may take (``actors/run_reconciliation.py``): whoever began it is no more."""

LATELY = timedelta(days=1)
"""A repair that fails for so long is left to the next run, and to whoever reads the log."""

AT_ONCE = 100

_OPEN = text("""
    SELECT run_id FROM recon_run
     WHERE status IN ('queued', 'running')
       AND coalesce(started_at + :broken_off, created_at + :forgotten) < :now
     ORDER BY created_at LIMIT :most
""")

# Whoever repairs says in ``outcome`` what became of it, also when it was refused.
_UNREPAIRED = text(f"""
    SELECT DISTINCT r.run_id
      FROM recon_finding f JOIN recon_run r ON r.run_id = f.last_run_id
     WHERE {WAITS_FOR_REPAIR} AND f.outcome IS NULL
       AND r.status = 'done' AND r.finished_at BETWEEN :since AND :before
     ORDER BY r.run_id LIMIT :most
""")


def sweep_reconciliations(services: Services) -> int:
    """Send each forgotten run again; how many. Raises ``StoreUnavailable``."""
    now = services.clock()
    named = {"now": now, "broken_off": BROKEN_OFF, "forgotten": FORGOTTEN, "most": AT_ONCE}
    ended = {"since": now - LATELY, "before": now - BROKEN_OFF, "automatic": sorted(AUTOMATIC), "most": AT_ONCE}
    with transaction(services.engine) as connection:
        forgotten = [row.run_id for row in connection.execute(_OPEN, named)]
        forgotten += [row.run_id for row in connection.execute(_UNREPAIRED, ended)]
    for run_id in forgotten:
        services.post.send(run_reconciliation(run_id))
    return len(forgotten)
