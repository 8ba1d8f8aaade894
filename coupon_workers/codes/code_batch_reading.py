"""How batches of codes stand (API.md, codes)."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil

from pydantic import BaseModel, Field

from coupon_workers.codes.code_batch import CodeBatchStatus, ExportState, Row, read_code_batch
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.newest_page import newest
from coupon_workers.runtime.services import Services
from coupon_workers.schema import CodeBatch

LEAST_SPAN = timedelta(milliseconds=100)
"""A rate over less than this says nothing."""


class CodeBatchAnswer(BaseModel):
    """A batch of codes at this moment. No code is in it."""

    code_batch_id: str
    template_id: str
    status: CodeBatchStatus
    quantity: int
    length: int = Field(description="characters behind the prefix, the check digit among them")
    prefix: str
    channel: str | None = Field(description="the only one in which the codes hold; null: in all")
    check_digit: bool
    expires_at: str | None = Field(description="null: with the template")
    generated: int
    used: int
    reserved: int = Field(description="units of stock that it holds for unused codes")
    percent: float = Field(description="of the codes, how many are generated")
    codes_per_second: float
    eta_seconds: int | None
    export: ExportState = Field(description="kept: codes.csv can be fetched, once it is done")
    fetched_at: str | None
    fetched_by: str | None
    pepper: str = Field(description="the id of the key under which the codes are hashed")
    created_by: str
    created_at: str
    finished_at: str | None = Field(description="when the last code was generated")
    ended_by: str | None
    ended_at: str | None


def read_one(services: Services, code_batch_id: int) -> CodeBatchAnswer:
    """The batch. Raises ``NotFound`` ``CODE_BATCH_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        return _answer(read_code_batch(connection, code_batch_id), services.clock())


def read_page(
    services: Services,
    *,
    limit: int,
    before: int | None = None,
    status: CodeBatchStatus | None = None,
    template_id: int | None = None,
) -> list[CodeBatchAnswer]:
    """The newest ``limit`` batches with identities below ``before``; of a status or a template if one is asked for.

    Raises ``StoreUnavailable``.
    """
    wanted = newest(CodeBatch.code_batch_id, limit=limit, before=before, status=status, template_id=template_id)
    with transaction(services.engine) as connection:
        return [_answer(dict(row), services.clock()) for row in connection.execute(wanted).mappings()]


def _answer(row: Row, now: datetime) -> CodeBatchAnswer:
    rate = _codes_per_second(row, now)
    missing = row["quantity"] - row["generated_count"]
    return CodeBatchAnswer(
        code_batch_id=str(row["code_batch_id"]),
        template_id=str(row["template_id"]),
        status=row["status"],
        quantity=row["quantity"],
        length=row["length"],
        prefix=row["prefix"],
        channel=row["channel"],
        check_digit=row["check_digit"],
        expires_at=_instant(row["expires_at"]),
        generated=row["generated_count"],
        used=row["used_count"],
        reserved=row["left_quantity"],
        percent=row["generated_count"] * 1000 // row["quantity"] / 10,
        codes_per_second=rate,
        eta_seconds=ceil(missing / rate) if row["status"] == CodeBatchStatus.GENERATING and rate else None,
        export=row["export"],
        fetched_at=_instant(row["fetched_at"]),
        fetched_by=row["fetched_by"],
        pepper=row["pepper_id"],
        created_by=row["created_by"],
        created_at=rfc3339(row["created_at"]),
        finished_at=_instant(row["finished_at"]),
        ended_by=row["ended_by"],
        ended_at=_instant(row["ended_at"]),
    )


def _codes_per_second(row: Row, now: datetime) -> float:
    span = max((row["finished_at"] or row["ended_at"] or now) - row["created_at"], LEAST_SPAN)
    return float(round(row["generated_count"] / span.total_seconds(), 1))


def _instant(at: datetime | None) -> str | None:
    return rfc3339(at) if at else None
