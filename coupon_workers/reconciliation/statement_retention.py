"""Forgetting statements that were replaced long ago. The latest of each day stays."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, text

from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

KEEP = timedelta(days=90)
"""From the day on which it was replaced: as of a moment within it, what was found is found again."""

STATEMENT_TIMEOUT_MS = 300_000
"""A revision goes in one transaction, so that none is ever there in part; nobody reads it any more."""

# By the index of days: a statement a day is a table of a few hundred rows a year.
_NEXT = text("""
    SELECT old.business_date, old.revision FROM order_statement old
      JOIN order_statement new ON new.business_date = old.business_date AND new.revision = old.revision + 1
     WHERE new.received_at < :before
     ORDER BY old.business_date, old.revision LIMIT 1
       FOR UPDATE OF old SKIP LOCKED
""")
_ROWS = text("DELETE FROM order_statement_row WHERE business_date = :day AND revision = :revision")
_HEADER = text("DELETE FROM order_statement WHERE business_date = :day AND revision = :revision")


def forget_statements(services: Services, now: datetime) -> int:
    """Delete revisions that were replaced ``KEEP`` before ``now``; how many. Safe to run twice, at once or after being
    broken off.

    Raises ``StoreUnavailable``; the revisions before then are gone.
    """
    forgotten = 0
    while True:
        with transaction(services.engine) as connection:
            if not _forget_one(connection, now - KEEP):
                return forgotten
        forgotten += 1


def _forget_one(connection: Connection, before: datetime) -> bool:
    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}")
    found = connection.execute(_NEXT, {"before": before}).one_or_none()
    if found is None:
        return False
    named = {"day": found.business_date, "revision": found.revision}
    connection.execute(_ROWS, named)
    connection.execute(_HEADER, named)
    return True
