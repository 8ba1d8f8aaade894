"""The jobs of the scheduler over HTTP (API.md, Operations): how they stand, and a run now."""

from __future__ import annotations

from typing import Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from coupon_workers.runtime.clock import rfc3339
from coupon_workers.scheduling.extra_run import ExtraRun, run_now
from coupon_workers.scheduling.job_reading import JobState, read_jobs
from coupon_workers.scheduling.last_run import LastRun
from web.auth import require
from web.context import principal, services
from web.idempotent import idempotent, subject_id
from web.problem_code import refuses

api = APIBlueprint("jobs", __name__, abp_tags=[Tag(name="Operations")])


class LastRunAnswer(BaseModel):
    """A logical run. ``enqueued_at`` is null while its task has not been sent: the broker may be away."""

    logical_at: str = Field(description="when it was meant to run")
    recorded_at: str
    enqueued_at: str | None


class ExtraRunAnswer(BaseModel):
    """A run that was asked for, beside the logical ones."""

    run_id: str
    job: str
    logical_at: str = Field(description="the logical run that it repeats")
    asked_by: str = Field(description="the key's id")
    recorded_at: str
    enqueued_at: str | None


class JobAnswer(BaseModel):
    """A row of the table of jobs."""

    name: str
    trigger: str
    last_run: LastRunAnswer | None = Field(description="null: no scheduler has run yet")
    next_run_at: str
    last_extra_run: ExtraRunAnswer | None


class JobList(BaseModel):
    """Every job, in the order of the table."""

    items: list[JobAnswer]
    next_cursor: None


class JobPath(BaseModel):
    """The job in the path."""

    name: str


@api.get("/v1/jobs", summary="The table of jobs", responses={200: JobList})
@require("ops")
def get_jobs() -> Any:
    """What the scheduler does and when: the last logical run of each job, its next one, the last one asked for."""
    return {"items": [_show(job) for job in read_jobs(services())], "next_cursor": None}


@api.post("/v1/jobs/<name>/run", summary="Run a job now", responses={202: ExtraRunAnswer})
@require("ops")
@refuses("JOB_NOT_FOUND")
@idempotent
def post_run(path: JobPath) -> Any:
    """Its task is sent to the workers, as an extra run: what is due stays due. 404 `JOB_NOT_FOUND`. 503 when the broker
    did not take it: ask again."""
    return _show_extra(run_now(services(), path.name, subject_id(), principal().key_id)), 202


def _show(job: JobState) -> dict[str, Any]:
    return {
        "name": job.name,
        "trigger": job.trigger,
        "last_run": job.last and _show_last(job.last),
        "next_run_at": rfc3339(job.next_at),
        "last_extra_run": job.last_extra and _show_extra(job.last_extra),
    }


def _show_last(run: LastRun) -> dict[str, Any]:
    return {
        "logical_at": rfc3339(run.logical_at),
        "recorded_at": rfc3339(run.recorded_at),
        "enqueued_at": run.enqueued_at and rfc3339(run.enqueued_at),
    }


def _show_extra(run: ExtraRun) -> dict[str, Any]:
    return {
        "run_id": str(run.run_id),
        "job": run.job,
        "logical_at": rfc3339(run.logical_at),
        "asked_by": run.asked_by,
        "recorded_at": rfc3339(run.recorded_at),
        "enqueued_at": run.enqueued_at and rfc3339(run.enqueued_at),
    }
