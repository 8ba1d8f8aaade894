"""How many findings wait, for those who watch (docs/operations.md)."""

from __future__ import annotations

from sqlalchemy import text

from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

STATEMENT_MS = 900
"""A scrape does not wait for a database that is busy with other things."""

MOST_COUNTED = 100_000
"""Findings that are counted: more is as bad."""

_OPEN = text("""
    SELECT kind, count(*) AS waiting
      FROM (SELECT kind FROM recon_finding WHERE state = 'open' LIMIT :most) AS found GROUP BY kind
""")


def read_open_findings(services: Services) -> dict[ReconKind, int]:
    """Open findings of each kind, 0 among them. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_MS}"))
        counts = {row.kind: int(row.waiting) for row in connection.execute(_OPEN, {"most": MOST_COUNTED})}
    return {kind: counts.get(kind.value, 0) for kind in ReconKind}
