"""What waits for a second person beside templates: batches, and lotteries, which are decided on their own pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import text

from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

MOST = 50
"""Listed of each kind, the newest."""

_WAITING = text("""
    (SELECT 'batch' AS kind, batch_id AS number, name, created_by, created_at FROM issue_batch
      WHERE status = 'ready' AND needs_approval AND approved_by IS NULL
      ORDER BY batch_id DESC LIMIT :most)
    UNION ALL
    (SELECT 'lottery', lottery_id, name, created_by, created_at FROM lottery
      WHERE gate_forgotten_at IS NULL AND status = 'pending_approval' ORDER BY lottery_id DESC LIMIT :most)
    ORDER BY created_at
""")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A batch or a lottery that nobody has approved yet. ``number``: its identity in decimal."""

    kind: Literal["batch", "lottery"]
    number: str
    name: str
    created_by: str
    created_at: datetime


def read_waiting(services: Services) -> list[Waiting]:
    """Whoever has waited longest first. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        rows = connection.execute(_WAITING, {"most": MOST}).all()
    return [Waiting(row.kind, str(row.number), row.name, row.created_by, row.created_at) for row in rows]
