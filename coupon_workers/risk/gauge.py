"""What waits for an operator of risk control, and what was not noted, for those who watch (docs/operations.md)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

STATEMENT_MS = 900
"""A scrape does not wait for a database that is busy with other things."""

MOST_COUNTED = 100_000
"""Reviews that are counted: more is as bad."""

_WAITING = text("SELECT count(*) FROM (SELECT FROM risk_review WHERE state = 'held' LIMIT :most) AS held")
_DROPPED = text("SELECT coalesce(sum(dropped), 0) FROM risk_log_loss")


@dataclass(frozen=True, slots=True)
class RiskGauge:
    """``held`` claims wait for review; ``dropped`` refusals found no room in a gate's log."""

    held: int
    dropped: int


def read_risk(services: Services) -> RiskGauge:
    """Both, as they are now. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_MS}"))
        held = connection.scalar(_WAITING, {"most": MOST_COUNTED})
        return RiskGauge(int(held or 0), int(connection.scalar(_DROPPED) or 0))
