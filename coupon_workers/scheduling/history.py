"""Forgetting: job runs and stored answers past their keeping time, in chunks that an index serves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text

from coupon_workers.runtime.chunked_deletion import CHUNK, delete_in_chunks
from coupon_workers.runtime.services import Services
from coupon_workers.scheduling.job import FREQUENT, KEEP_FREQUENT_RUNS, KEEP_RUNS

KEEP_ANSWERS = timedelta(days=7)
"""How long a request with an ``Idempotency-Key`` is answered as before; API.md promises a day at least."""

# Sub-selects with LIMIT 1 and max() are single probes of the primary key, whatever the planner thinks of the table. The
# newest run of a job always stays: it says what has run.

# The job ran again within the hour, so it is one of the frequent ones.
_FREQUENT_RUNS = text("""
    DELETE FROM job_run WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM job_run AS run
        WHERE recorded_at < :before AND run.logical_at + CAST(:frequent AS interval) > (
            SELECT later.logical_at FROM job_run AS later
            WHERE later.job = run.job AND later.logical_at > run.logical_at ORDER BY later.logical_at LIMIT 1
        )
        ORDER BY recorded_at LIMIT :chunk
    ))
""")

_OLD_RUNS = text("""
    DELETE FROM job_run WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM job_run AS run
        WHERE recorded_at < :before AND run.logical_at < (
            SELECT max(newest.logical_at) FROM job_run AS newest WHERE newest.job = run.job
        )
        ORDER BY recorded_at LIMIT :chunk
    ))
""")

_OLD_EXTRA_RUNS = text("""
    DELETE FROM job_extra_run WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM job_extra_run WHERE recorded_at < :before ORDER BY recorded_at LIMIT :chunk
    ))
""")

_OLD_ANSWERS = text("""
    DELETE FROM idempotency WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM idempotency WHERE created_at < :before ORDER BY created_at LIMIT :chunk
    ))
""")


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows were deleted; extra runs are job runs."""

    job_runs: int
    answers: int


def prune_history(services: Services, now: datetime) -> Pruned:
    """Delete what is past its keeping time at ``now``. Safe to run twice, at once or after being broken off.

    Runs of jobs that run more often than hourly are kept for a day, others for 90, the newest of each for ever; extra
    runs for 90; stored answers for seven days. Raises ``StoreUnavailable``; the chunks before then are done.
    """
    engine = services.engine
    frequent = delete_in_chunks(
        engine, _FREQUENT_RUNS, {"before": now - KEEP_FREQUENT_RUNS, "frequent": FREQUENT}, CHUNK
    )
    old = delete_in_chunks(engine, _OLD_RUNS, {"before": now - KEEP_RUNS}, CHUNK)
    answers = delete_in_chunks(engine, _OLD_ANSWERS, {"before": now - KEEP_ANSWERS}, CHUNK)
    extra = delete_in_chunks(engine, _OLD_EXTRA_RUNS, {"before": now - KEEP_RUNS}, CHUNK)
    return Pruned(frequent + old + extra, answers)
