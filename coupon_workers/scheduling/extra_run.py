"""An extra run: somebody asks for a job's task now. Noted in a book of its own, beside the logical runs.

The book of logical runs tells what is due (``job_run.py``) and whether a scheduler lives: an extra run must change
neither. Its task repeats the job's newest logical instant, which tasks bear, as the scheduler may repeat one too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import NotFound
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.scheduling.job import Job
from coupon_workers.scheduling.job_table import TABLE

_COLUMNS = "job, run_id, logical_at, asked_by, recorded_at, enqueued_at"

_NOTE = text(f"""
    INSERT INTO job_extra_run ({_COLUMNS}) VALUES (:job, :run_id, :logical_at, :asked_by, clock_timestamp(), NULL)
    ON CONFLICT (job, run_id) DO NOTHING
""")
_READ = text(f"SELECT {_COLUMNS} FROM job_extra_run WHERE job = :job AND run_id = :run_id")
_MARK = text(f"""
    UPDATE job_extra_run SET enqueued_at = clock_timestamp() WHERE job = :job AND run_id = :run_id RETURNING {_COLUMNS}
""")

# Identities rise with time.
_NEWEST = text(f"""
    SELECT {", ".join(f"run.{column}" for column in _COLUMNS.split(", "))}
    FROM unnest(CAST(:jobs AS text[])) AS wanted (job)
    CROSS JOIN LATERAL (
        SELECT * FROM job_extra_run WHERE job_extra_run.job = wanted.job ORDER BY run_id DESC LIMIT 1
    ) AS run
""")

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExtraRun:
    """A run that ``asked_by`` asked for. ``enqueued_at`` None: its task has not been sent, as far as anybody knows."""

    job: str
    run_id: int
    logical_at: datetime
    asked_by: str
    recorded_at: datetime
    enqueued_at: datetime | None


def run_now(services: Services, name: str, run_id: int, asked_by: str) -> ExtraRun:
    """Note an extra run of the job ``name`` of the table, and send its task. Of one ``run_id`` the task is sent once,
    unless its sender dies before he has noted it.

    Raises ``NotFound`` ``JOB_NOT_FOUND``, and ``StoreUnavailable``: the run is then noted without having been sent, or
    nothing is known of it.
    """
    job = next((job for job in TABLE if job.name == name), None)
    if job is None:
        raise NotFound("JOB_NOT_FOUND", "there is no such job")
    run = _note(services, job, run_id, asked_by)
    if run.enqueued_at is not None:
        return run
    services.post.send(job.task(run.logical_at))
    log.info("extra_run_sent", job=name, run_id=run_id, asked_by=asked_by)
    with transaction(services.engine) as connection:
        return ExtraRun(*connection.execute(_MARK, {"job": name, "run_id": run_id}).one())


def newest_extra_runs(engine: Engine) -> dict[str, ExtraRun]:
    """The newest of each job of the table that has one. Raises ``StoreUnavailable``."""
    with transaction(engine) as connection:
        rows = connection.execute(_NEWEST, {"jobs": [job.name for job in TABLE]})
        return {row.job: ExtraRun(*row) for row in rows}


def _note(services: Services, job: Job, run_id: int, asked_by: str) -> ExtraRun:
    key = {"job": job.name, "run_id": run_id}
    written = key | {"logical_at": job.newest_instant(services.clock()), "asked_by": asked_by}
    with transaction(services.engine) as connection:
        if connection.execute(_NOTE, written).rowcount:
            facts = {"run_id": str(run_id), "logical_at": written["logical_at"]}
            record(connection, AuditAction.JOB_RUN, f"job:{job.name}", after=facts)
        return ExtraRun(*connection.execute(_READ, key).one())
