"""The book of job runs: each logical run once, written before its task is sent (DESIGN 10, invariant 9).

Every write names the leader's epoch and is refused by the database when the lease has passed on. The lease row is
locked for the length of the statement, so that no write slips in beside a take-over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Engine, text

from coupon_workers.scheduling.leader import Leadership, statement_at_once

_FENCE = """
    SELECT epoch FROM scheduler_lease
    WHERE name = :lease AND holder = :holder AND epoch = :epoch AND expires_at > clock_timestamp()
    FOR SHARE
"""

_RECORD = text(f"""
    WITH fence AS ({_FENCE}),
    written AS (
        INSERT INTO job_run (job, logical_at, epoch) SELECT :job, :logical_at, epoch FROM fence
        ON CONFLICT (job, logical_at) DO NOTHING
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM fence) AS leads, (SELECT count(*) FROM written) AS written
""")

_MARK = text(f"""
    WITH fence AS ({_FENCE})
    UPDATE job_run SET enqueued_at = clock_timestamp()
    FROM fence
    WHERE job = :job AND logical_at = :logical_at AND enqueued_at IS NULL
""")

_NEWEST = text("""
    SELECT run.job, run.logical_at, run.enqueued_at
    FROM unnest(CAST(:jobs AS text[])) AS wanted (job)
    CROSS JOIN LATERAL (
        SELECT job, logical_at, enqueued_at FROM job_run
        WHERE job_run.job = wanted.job ORDER BY logical_at DESC LIMIT 1
    ) AS run
""")


class Recording(StrEnum):
    """What became of an attempt to write a run into the book."""

    RECORDED = "recorded"
    KNOWN = "known"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class Run:
    """A logical run. ``enqueued_at`` None: its task has not been sent, as far as anybody knows."""

    job: str
    logical_at: datetime
    enqueued_at: datetime | None = None


def newest_runs(engine: Engine, jobs: Sequence[str]) -> dict[str, Run]:
    """The newest run of each of ``jobs`` that has one. Raises ``StoreUnavailable``."""
    with statement_at_once(engine) as connection:
        rows = connection.execute(_NEWEST, {"jobs": list(jobs)})
        return {row.job: Run(row.job, row.logical_at, row.enqueued_at) for row in rows}


def record_run(engine: Engine, leadership: Leadership, job: str, logical_at: datetime) -> Recording:
    """Write a logical run, once. Raises ``StoreUnavailable``: it may have been written."""
    with statement_at_once(engine) as connection:
        row = connection.execute(_RECORD, _named(leadership, job, logical_at)).one()
    if not row.leads:
        return Recording.FENCED
    return Recording.RECORDED if row.written else Recording.KNOWN


def mark_enqueued(engine: Engine, leadership: Leadership, job: str, logical_at: datetime) -> bool:
    """Note that the run's task was sent; False when the lease has passed on.

    Raises ``StoreUnavailable``: the task will be sent again, and may have run by then.
    """
    with statement_at_once(engine) as connection:
        return connection.execute(_MARK, _named(leadership, job, logical_at)).rowcount == 1


def _named(leadership: Leadership, job: str, logical_at: datetime) -> dict[str, object]:
    return {
        "lease": leadership.name,
        "holder": leadership.holder,
        "epoch": leadership.epoch,
        "job": job,
        "logical_at": logical_at,
    }
