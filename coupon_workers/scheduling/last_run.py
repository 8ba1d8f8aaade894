"""The last run of each job: what the metrics and ``GET /v1/jobs`` tell of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, text

from coupon_workers.runtime.database import transaction

STATEMENT_MS = 900
"""A scrape does not wait for a database that is busy with other things."""

# Leaps from job to job over the primary key: the table holds a day of runs, and this reads a few rows of it.
_LAST_RUNS = text("""
    WITH RECURSIVE known AS (
        SELECT min(job) AS job FROM job_run
        UNION ALL
        SELECT (SELECT min(run.job) FROM job_run AS run WHERE run.job > known.job) FROM known
        WHERE known.job IS NOT NULL
    )
    SELECT newest.job, newest.logical_at, newest.recorded_at, newest.enqueued_at, sent.enqueued_at AS sent_at
    FROM known
    CROSS JOIN LATERAL (
        SELECT job, logical_at, recorded_at, enqueued_at FROM job_run
        WHERE job_run.job = known.job ORDER BY logical_at DESC LIMIT 1
    ) AS newest
    LEFT JOIN LATERAL (
        SELECT enqueued_at FROM job_run
        WHERE job_run.job = known.job AND enqueued_at IS NOT NULL ORDER BY logical_at DESC LIMIT 1
    ) AS sent ON true
    ORDER BY newest.job
""")


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest logical run of a job, when it was written down and its task sent (None: not yet).

    ``sent_at``: when last a task of the job was sent, be it for an earlier run. Extra runs do not count.
    """

    job: str
    logical_at: datetime
    recorded_at: datetime
    enqueued_at: datetime | None
    sent_at: datetime | None


def last_runs(engine: Engine) -> list[LastRun]:
    """One for each job that ever ran, by name. Raises ``StoreUnavailable``."""
    with transaction(engine) as connection:
        connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_MS}"))
        return [LastRun(*row) for row in connection.execute(_LAST_RUNS)]
