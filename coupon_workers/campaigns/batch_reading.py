"""How batches stand: counts that add up, how far they are, how fast they go (API.md, Campaign batches)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil

from pydantic import BaseModel, Field
from sqlalchemy import Connection, func, select

from coupon_workers.campaigns.batch import OPEN, BatchPolicy, BatchStatus, Row, batch_no, read_batch
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.newest_page import newest
from coupon_workers.runtime.services import Services
from coupon_workers.schema import IssueBatch, IssueShard

LEAST_SPAN = timedelta(milliseconds=100)
"""A rate over less than this says nothing."""


class ShardCount(BaseModel):
    """Of the parts in which a batch is issued, how many are through."""

    total: int
    done: int


class BatchAnswer(BaseModel):
    """A batch at this moment.

    ``rows`` = ``valid`` + ``invalid``; ``valid`` = ``duplicate`` + ``issued`` + ``refused`` + ``pending``.
    """

    batch_no: str
    template_id: str
    name: str
    status: BatchStatus
    reason: str | None = Field(description="why it failed, or by whom or what it was paused or cancelled")
    policy: BatchPolicy
    tags: str | None = Field(description="the expression of its audience; null for a file")
    file_name: str | None
    rows: int = Field(description="of the audience; blank ones do not count")
    valid: int
    duplicate: int = Field(description="rows of a user who has one before")
    invalid: int
    issued: int
    refused: int
    pending: int = Field(description="users who are neither issued nor refused")
    reserved: int = Field(description="units of stock that it holds and has not issued")
    shards: ShardCount
    percent: float
    rows_per_second: float | None = Field(description="since it started; null before")
    eta_seconds: int | None = Field(description="null when it does not run, or nothing is known yet")
    needs_approval: bool
    approved_by: str | None
    created_by: str
    created_at: str
    start_at: str | None
    started_at: str | None
    finished_at: str | None


def read_one(services: Services, batch_id: int) -> BatchAnswer:
    """The batch. Raises ``NotFound`` ``BATCH_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        return _answers(connection, [read_batch(connection, batch_id)], services.clock())[0]


def read_page(
    services: Services,
    *,
    limit: int,
    before: int | None = None,
    status: BatchStatus | None = None,
    template_id: int | None = None,
) -> list[BatchAnswer]:
    """The newest ``limit`` batches with identities below ``before``; of a status or a template if one is asked for.

    Raises ``StoreUnavailable``.
    """
    wanted = newest(IssueBatch.batch_id, limit=limit, before=before, status=status, template_id=template_id)
    with transaction(services.engine) as connection:
        rows = [dict(row) for row in connection.execute(wanted).mappings()]
        return _answers(connection, rows, services.clock())


def _answers(connection: Connection, rows: Sequence[Row], now: datetime) -> list[BatchAnswer]:
    done = _shards_done(connection, [row["batch_id"] for row in rows])
    return [_answer(row, done.get(row["batch_id"], 0), now) for row in rows]


def _shards_done(connection: Connection, batch_ids: list[int]) -> dict[int, int]:
    counts = (
        select(IssueShard.batch_id, func.count().label("done"))
        .where(IssueShard.batch_id.in_(batch_ids), IssueShard.cursor == IssueShard.member_count)
        .group_by(IssueShard.batch_id)
    )
    return {row.batch_id: row.done for row in connection.execute(counts)}


def _answer(row: Row, shards_done: int, now: datetime) -> BatchAnswer:
    treated = row["issued_count"] + row["refused_count"]
    pending = row["audience_count"] - treated
    rate = _rows_per_second(row, treated, now)
    runs = row["status"] == BatchStatus.RUNNING
    return BatchAnswer(
        batch_no=batch_no(row["batch_id"]),
        template_id=str(row["template_id"]),
        name=row["name"],
        status=row["status"],
        reason=row["reason"],
        policy=row["policy"],
        tags=row["tags"],
        file_name=row["file_name"],
        rows=row["row_count"],
        valid=row["audience_count"] + row["duplicate_count"],
        duplicate=row["duplicate_count"],
        invalid=row["invalid_count"],
        issued=row["issued_count"],
        refused=row["refused_count"],
        pending=pending,
        reserved=row["left_quantity"],
        shards=ShardCount(total=row["shard_count"], done=shards_done),
        percent=_percent(row, treated),
        rows_per_second=rate,
        eta_seconds=ceil(pending / rate) if runs and rate else None,
        needs_approval=row["needs_approval"],
        approved_by=row["approved_by"],
        created_by=row["created_by"],
        created_at=rfc3339(row["created_at"]),
        start_at=_instant(row["start_at"]),
        started_at=_instant(row["started_at"]),
        finished_at=_instant(row["finished_at"]),
    )


def _percent(row: Row, treated: int) -> float:
    """With one decimal, cut off: 100 means all. Nothing to do is 100 once it has ended."""
    if row["audience_count"] == 0:
        return 0.0 if row["status"] in OPEN else 100.0
    return float(treated * 1000 // row["audience_count"] / 10)


def _rows_per_second(row: Row, treated: int, now: datetime) -> float | None:
    if row["started_at"] is None:
        return None
    span = max((row["finished_at"] or now) - row["started_at"], LEAST_SPAN)
    return float(round(treated / span.total_seconds(), 1))


def _instant(at: datetime | None) -> str | None:
    return rfc3339(at) if at else None
