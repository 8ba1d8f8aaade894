"""Health, queues and jobs, as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class Alive(TypedDict):
    """The process answers."""

    status: Literal["ok"]


class PartState(TypedDict):
    """One part; members beside `state` say more about it."""

    state: Literal["ok", "late", "down"]


class Readiness(TypedDict):
    """Every part and, in `status`, what their states come to: `ok` when none is down, `degraded` when claims are
    accepted all the same, `down` when they are not."""

    status: Literal["ok", "degraded", "down"]
    parts: dict[str, PartState]


class QueueAnswer(TypedDict):
    """A queue of messages. `age_ms`: of the oldest that waits; null when none does, or RabbitMQ does not tell."""

    name: str
    depth: int
    age_ms: int | None
    delayed: int
    in_work: int | None
    dead_letters: int


class PendingAnswer(TypedDict):
    """Accepted claims of one template's bucket that are not settled yet."""

    template_id: str
    bucket: int
    depth: int
    oldest_age_ms: int


class QueuesAnswer(TypedDict):
    """What waits in the broker, and which accepted claims wait in the pending streams."""

    queues: list[QueueAnswer]
    pending_claims: list[PendingAnswer]
    pending_total: int


class DeadLetterAnswer(TypedDict):
    """A message that was given up. `actor` and `args` are null when nobody can read it."""

    id: str
    queue: str
    actor: str | None
    args: list[Any] | None
    error: str | None
    died_at: str


class DeadLetterEnd(TypedDict):
    """What became of it."""

    id: str
    status: str


class LastRunAnswer(TypedDict):
    """A logical run. `enqueued_at` is null while its task has not been sent: the broker may be away."""

    logical_at: str
    recorded_at: str
    enqueued_at: str | None


class ExtraRunAnswer(TypedDict):
    """A run that was asked for, beside the logical ones."""

    run_id: str
    job: str
    logical_at: str
    asked_by: str
    recorded_at: str
    enqueued_at: str | None


class JobAnswer(TypedDict):
    """A row of the table of jobs."""

    name: str
    trigger: str
    last_run: LastRunAnswer | None
    next_run_at: str
    last_extra_run: ExtraRunAnswer | None
