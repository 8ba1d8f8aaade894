"""How far the telling is behind what happened, for those who watch (docs/operations.md)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

STATEMENT_MS = 900
"""A scrape does not wait for a database that is busy with other things."""

MOST_COUNTED = 100_000
"""Rows of a kind that are counted: more is as bad."""

_LAG = text("""
    SELECT (SELECT count(*) FROM (SELECT FROM outbox WHERE delivered_at IS NULL LIMIT :most) AS o) AS events,
           (SELECT extract(epoch FROM clock_timestamp() - created_at) FROM outbox
             WHERE delivered_at IS NULL ORDER BY outbox_id LIMIT 1) AS age_s,
           (SELECT count(*) FROM (SELECT FROM delivery WHERE state = 'pending' LIMIT :most) AS p) AS pending,
           (SELECT count(*) FROM (SELECT FROM delivery WHERE state = 'dead' LIMIT :most) AS d) AS dead,
           (SELECT count(*) FROM delivery_pause WHERE paused_until > :now) AS paused
""")


@dataclass(frozen=True, slots=True)
class Lag:
    """``events`` were not passed on, the oldest for ``age_s`` seconds; ``pending`` deliveries are on their way and
    ``dead`` ones were given up in the last thirty days; ``paused`` targets cannot be reached. At most
    ``MOST_COUNTED`` of each."""

    events: int
    age_s: float
    pending: int
    dead: int
    paused: int


def read_lag(services: Services) -> Lag:
    """The state at this moment. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_MS}"))
        row = connection.execute(_LAG, {"most": MOST_COUNTED, "now": services.clock()}).one()
    return Lag(row.events, max(0.0, float(row.age_s or 0)), row.pending, row.dead, row.paused)
