"""Statements as they are shown: the latest of a day, and all there were of it that are kept."""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import Connection, text

from coupon_workers.errors import NotFound
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_REVISIONS = text("SELECT * FROM order_statement WHERE business_date = :day ORDER BY revision")
_LATEST = text("SELECT * FROM order_statement WHERE business_date = :day ORDER BY revision DESC LIMIT 1")
_DAYS = text("""
    SELECT DISTINCT ON (business_date) * FROM order_statement WHERE business_date < :before
     ORDER BY business_date DESC, revision DESC LIMIT :limit
""")


class StatementRevision(BaseModel):
    """A statement as it was received. ``fingerprint`` is the SHA-256 of the file, in hex."""

    revision: int
    rows: int = Field(description="orders in it")
    fingerprint: str
    received_at: str
    received_by: str


class DayStatement(StatementRevision):
    """The latest statement of a day."""

    date: str


class Statement(DayStatement):
    """The latest statement of a day, and the revisions that are kept, oldest first."""

    revisions: list[StatementRevision]


def read_statement(services: Services, day: date) -> Statement:
    """The day's statement. Raises ``NotFound`` ``STATEMENT_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        return read_whole(connection, day)


def list_statements(services: Services, *, limit: int, before: date = date.max) -> list[DayStatement]:
    """The latest statements of ``limit`` days before a day, the latest day first. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        found = connection.execute(_DAYS, {"before": before, "limit": limit})
        return [DayStatement(date=row.business_date.isoformat(), **_revision(row).model_dump()) for row in found]


def read_latest(connection: Connection, day: date) -> StatementRevision | None:
    """The latest statement of the day, if there is any."""
    row = connection.execute(_LATEST, {"day": day}).one_or_none()
    return None if row is None else _revision(row)


def read_whole(connection: Connection, day: date) -> Statement:
    """The day's statement. Raises ``NotFound`` ``STATEMENT_NOT_FOUND``."""
    revisions = [_revision(row) for row in connection.execute(_REVISIONS, {"day": day})]
    if not revisions:
        raise NotFound("STATEMENT_NOT_FOUND", f"no statement of {day} has come")
    return Statement(date=day.isoformat(), **revisions[-1].model_dump(), revisions=revisions)


def _revision(row: Any) -> StatementRevision:
    return StatementRevision(
        revision=row.revision,
        rows=row.row_count,
        fingerprint=bytes(row.fingerprint).hex(),
        received_at=rfc3339(row.received_at),
        received_by=row.received_by,
    )
