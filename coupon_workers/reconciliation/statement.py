"""Taking the order centre's statement of a day: whole or not at all, in place of the one before (API.md, Orders)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from hashlib import sha256
from typing import BinaryIO

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.operator import SYSTEM, acting_operator
from coupon_workers.audit.record import record
from coupon_workers.campaigns.audience_text import BLOCK_BYTES, AudienceText, read_blocks
from coupon_workers.campaigns.copy_in import copy_in
from coupon_workers.errors import Conflict, InvalidInput, StatementRowsError
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.run import ask_run
from coupon_workers.reconciliation.statement_csv import BadLine, read_statement
from coupon_workers.reconciliation.statement_reading import Statement, read_latest, read_whole
from coupon_workers.reconciliation.statement_row import StatementRow
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

BATCH_ROWS = 10_000
"""Rows that are copied at once: they are in memory together."""

NAMED_ROWS = 100
"""Bad rows that are named; the others are counted."""

STATEMENT_TIMEOUT_MS = 300_000
"""Of a statement that goes through all rows, and of the wait for another one of the same day."""

FIRST_ZONE = timedelta(hours=14)
"""The zone in which a day begins first."""

_ALONE = text("SELECT pg_advisory_xact_lock(hashtextextended('order_statement:' || CAST(:day AS text), 0))")

# A temporary table has no index, and all of it is wanted.
_LARGE = f"""
    SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS};
    SET LOCAL work_mem = '32MB';
    SET LOCAL jit = off;
    SET LOCAL enable_seqscan = on;
"""
_STAGE = """
    CREATE TEMPORARY TABLE stated_row (
        line_no bigint, user_id text COLLATE "C", order_no text COLLATE "C", status text, paid_minor bigint,
        discount_minor bigint, currency text
    ) ON COMMIT DROP
"""

_COLUMNS = ", ".join(StatementRow._fields)

_TWICE = text("""
    SELECT line_no, first_line_no, count(*) OVER () AS doubles
      FROM (SELECT line_no, min(line_no) OVER (PARTITION BY user_id, order_no) AS first_line_no FROM stated_row) AS r
     WHERE line_no <> first_line_no ORDER BY line_no LIMIT :most
""")

_ROWS = text(f"""
    INSERT INTO order_statement_row (business_date, revision, {_COLUMNS})
    SELECT :day, :revision, {_COLUMNS} FROM stated_row ORDER BY user_id, order_no
""")

_AROUND = text("""
    SELECT DISTINCT business_date FROM order_statement
     WHERE business_date BETWEEN CAST(:day AS date) - 1 AND CAST(:day AS date) + 1 ORDER BY business_date
""")

_HEADER = text("""
    INSERT INTO order_statement (business_date, revision, row_count, fingerprint, received_by, received_at)
    VALUES (:day, :revision, :rows, :fingerprint, :operator, :now)
""")

log = get_logger(__name__)


@dataclass(slots=True)
class _BadLines:
    """The first bad lines, and how many there are."""

    first: list[BadLine] = field(default_factory=list)
    count: int = 0

    def add(self, line: BadLine) -> None:
        if self.count < NAMED_ROWS:
            self.first.append(line)
        self.count += 1


def take_statement(
    services: Services, day: date, content: BinaryIO, operator: str, *, over: int | None = None
) -> Statement:
    """Take the statement of ``day`` from a seekable CSV file: the day's next revision, or nothing at all.

    The bytes of the latest revision again are answered as it stands. Of two at once one comes after the other. What it
    says is then compared with the day's orders. ``over``: the revision that it is meant to replace, 0 for none.

    Raises ``Conflict`` ``STATEMENT_CHANGED``, with the latest ``revision``, when another one is there;
    ``InvalidInput`` for a day that has begun nowhere; ``AudienceFileError`` for a file that cannot be read;
    ``StatementRowsError`` naming ``NAMED_ROWS`` bad rows by ``line.<number>.<field>``; ``StoreUnavailable``.
    """
    if day > (services.clock() + FIRST_ZONE).date():
        raise InvalidInput([("date", "lies in the future")])
    fingerprint = _fingerprint(content)
    with transaction(services.engine) as connection:
        connection.exec_driver_sql(_LARGE)
        connection.execute(_ALONE, {"day": day})
        latest = read_latest(connection, day)
        if latest is None or latest.fingerprint != fingerprint.hex():
            before = latest.revision if latest else 0
            if over is not None and over != before:
                raise Conflict("STATEMENT_CHANGED", "another statement of the day is there", revision=before)
            rows = _stage(connection, content)
            revision = before + 1
            named = {"day": day, "revision": revision, "rows": rows, "fingerprint": fingerprint, "operator": operator}
            connection.execute(_ROWS, named)
            # Its instant is taken last: a look as of a moment before has not seen it.
            connection.execute(_HEADER, named | {"now": services.clock()})
            if acting_operator() is not SYSTEM:
                facts = {"revision": revision, "rows": rows, "fingerprint": fingerprint.hex()}
                record(connection, AuditAction.STATEMENT_TAKE, f"statement:{day}", after=facts)
            log.info("statement_taken", day=str(day), revision=revision, rows=rows, by=operator)
        whole = read_whole(connection, day)
    _have_compared(services, day, datetime.fromisoformat(whole.received_at), operator)
    return whole


def _have_compared(services: Services, day: date, as_of: datetime, operator: str) -> None:
    """The day, and its neighbours that have a statement: their orders around midnight may be in this one.

    As of the moment at which it came: a file that is sent again, because nobody answered, is compared once.
    """
    with transaction(services.engine) as connection:
        days = connection.scalars(_AROUND, {"day": day}).all()
    for each in days:
        ask_run(services, services.next_id(0), ReconKind.ORDERS, as_of, each, operator)


def _fingerprint(content: BinaryIO) -> bytes:
    digest = sha256()
    content.seek(0)
    while block := content.read(BLOCK_BYTES):
        digest.update(block)
    content.seek(0)
    return digest.digest()


def _stage(connection: Connection, content: BinaryIO) -> int:
    """Bring the rows into ``stated_row``; how many. Raises ``AudienceFileError``, ``StatementRowsError``."""
    connection.exec_driver_sql(_STAGE)
    bad = _BadLines()
    rows = 0
    for batch in _batches(AudienceText(read_blocks(content)), bad):
        copy_in(connection, "stated_row", StatementRow._fields, batch)
        rows += len(batch)
    twice = connection.execute(_TWICE, {"most": NAMED_ROWS}).all()
    if bad.count or twice:
        doubles = [(row.line_no, [("order_no", f"the order is in line {row.first_line_no} already")]) for row in twice]
        raise _refusal(bad.first + doubles, bad.count + (twice[0].doubles if twice else 0))
    return rows


def _batches(text_: AudienceText, bad: _BadLines) -> Iterator[list[StatementRow]]:
    batch: list[StatementRow] = []
    for row in read_statement(text_):
        if isinstance(row, StatementRow):
            batch.append(row)
        else:
            bad.add(row)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    yield batch


def _refusal(lines: list[BadLine], count: int) -> StatementRowsError:
    errors = [
        (f"line.{line_no}.{name}" if name else f"line.{line_no}", problem)
        for line_no, problems in sorted(lines)[:NAMED_ROWS]
        for name, problem in problems
    ]
    return StatementRowsError(errors, count)
