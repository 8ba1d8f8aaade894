"""How a batch stands: its counts add up at every moment, and its failures are read page by page."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, text

from coupon_workers.campaigns.batch import BatchPolicy, BatchStatus
from coupon_workers.campaigns.batch_failures import failures_csv
from coupon_workers.campaigns.batch_reading import read_one, read_page
from coupon_workers.campaigns.new_batch import NewBatch, create_batch, stored_name
from coupon_workers.errors import AudienceFileError, Conflict, InvalidInput, NotFound
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from coupon_workers.schema import BatchFailure, IssueBatch, IssueShard
from tests.support.template import TEMPLATE_ID, change_template, insert_template

BATCH_ID = 9_001
NOW = utc_now().replace(microsecond=0)


@pytest.fixture
def at(services: Services) -> Services:
    """Services whose clock stands at ``NOW``."""
    return replace(services, clock=lambda: NOW)


def _insert(services: Services, batch_id: int = BATCH_ID, **columns: Any) -> None:
    row = {
        "batch_id": batch_id,
        "template_id": TEMPLATE_ID,
        "name": "regulars",
        "policy": "best_effort",
        "created_by": "key",
        "created_at": NOW,
        "updated_at": NOW,
    }
    with services.engine.begin() as connection:
        connection.execute(insert(IssueBatch).values(row | columns))


def _running(services: Services, **columns: Any) -> None:
    counts = {"row_count": 1_100, "invalid_count": 40, "duplicate_count": 60, "audience_count": 1_000}
    books = {"issued_count": 350, "refused_count": 49, "reserved_quantity": 900, "left_quantity": 550}
    started = {"status": "running", "started_at": NOW - timedelta(seconds=10), "shard_count": 2}
    _insert(services, **(counts | books | started | columns))
    with services.engine.begin() as connection:
        for shard, cursor in ((0, 300), (1, 99)):
            row = {"batch_id": BATCH_ID, "shard": shard, "member_count": 300 if shard == 0 else 700}
            connection.execute(insert(IssueShard).values(row | {"cursor": cursor, "updated_at": NOW}))


def test_a_running_batch_tells_how_far_and_how_fast(at: Services) -> None:
    """Percent is cut off, so that 100 means all; the time that is left comes from the rate since its start."""
    _running(at)

    batch = read_one(at, BATCH_ID)

    assert (1_100, 1_060, 60, 40) == (batch.rows, batch.valid, batch.duplicate, batch.invalid)
    assert (350, 49, 601, 550) == (batch.issued, batch.refused, batch.pending, batch.reserved)
    assert batch.rows == batch.issued + batch.refused + batch.pending + batch.duplicate + batch.invalid
    assert (39.9, 39.9, 16) == (batch.percent, batch.rows_per_second, batch.eta_seconds)
    assert (2, 1) == (batch.shards.total, batch.shards.done)


def test_a_batch_that_does_not_run_has_no_end_in_sight(at: Services) -> None:
    """Paused, and not begun."""
    _running(at, status="paused", reason="paused by key")
    _insert(at, BATCH_ID + 1)

    paused, staging = read_one(at, BATCH_ID), read_one(at, BATCH_ID + 1)

    assert (None, "paused by key") == (paused.eta_seconds, paused.reason)
    assert (None, None, 0.0) == (staging.eta_seconds, staging.rows_per_second, staging.percent)


def test_a_batch_that_has_ended_keeps_its_rate(at: Services) -> None:
    """Over the time it took; one without users is through."""
    span = {"started_at": NOW - timedelta(hours=2), "finished_at": NOW - timedelta(hours=1)}
    counts = {"row_count": 7_200, "audience_count": 7_200, "issued_count": 7_200, "reserved_quantity": 7_200}
    _insert(at, status="done", **span, **counts)
    _insert(at, BATCH_ID + 1, status="failed", reason="NO_USERS")

    done, failed = read_one(at, BATCH_ID), read_one(at, BATCH_ID + 1)

    assert (2.0, 100.0, None) == (done.rows_per_second, done.percent, done.eta_seconds)
    assert 100.0 == failed.percent


def test_a_page_has_the_newest(at: Services) -> None:
    """Below an identity, in a status, of a template."""
    for number in range(4):
        status = "staging" if number % 2 else "ready"
        _insert(at, BATCH_ID + number, status=status, template_id=TEMPLATE_ID + number // 2)

    pages = [
        read_page(at, limit=2),
        read_page(at, limit=9, before=BATCH_ID + 2),
        read_page(at, limit=9, status=BatchStatus.STAGING),
        read_page(at, limit=9, template_id=TEMPLATE_ID),
    ]

    assert [[3, 2], [1, 0], [3, 1], [1, 0]] == [[int(each.batch_no) - BATCH_ID for each in page] for page in pages]


def test_a_batch_that_is_not_there_has_no_failures(services: Services) -> None:
    """It is told at once, not in the midst of a file."""
    with pytest.raises(NotFound, match="no such batch"):
        failures_csv(services, BATCH_ID)


def test_failures_come_in_the_order_of_the_audience(services: Services) -> None:
    """However many share a row number, whatever the pages are cut to, and each once."""
    _insert(services)
    rows = [(row_no, f"u{number}") for number, row_no in enumerate((5, 0, 0, 3, 0, 7, 3, 0, 5))]
    with services.engine.begin() as connection:
        for row_no, value in rows:
            failure = {"batch_id": BATCH_ID, "row_no": row_no, "value": value, "reason": "LIMIT_REACHED"}
            connection.execute(insert(BatchFailure).values(failure))

    files = [b"".join(failures_csv(services, BATCH_ID, page_rows=size)) for size in (1, 2, 3, 9, 100)]

    assert 1 == len(set(files))
    _, *read = csv.reader(io.StringIO(files[0].decode()))
    assert sorted(rows, key=lambda row: row[0]) == [(int(row_no), value) for row_no, value, _ in read]


def test_a_batch_without_failures_is_a_header(services: Services) -> None:
    """And nothing else."""
    _insert(services)

    assert [b"row,value,reason\r\n"] == list(failures_csv(services, BATCH_ID))


def test_no_transaction_is_open_while_a_page_is_taken(services: Services) -> None:
    """However slow a client is, it holds no connection."""
    _insert(services)

    pieces = failures_csv(services, BATCH_ID)
    next(pieces)

    with services.engine.connect() as connection:
        idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND pid <> pg_backend_pid()"
        assert 0 == connection.scalar(text(idle))


def _asked(**fields: Any) -> NewBatch:
    return NewBatch(**({"batch_id": BATCH_ID, "template_id": TEMPLATE_ID, "name": "n", "tags": None} | fields))


def _file(content: bytes = b"user_id\nu1\n") -> io.BytesIO:
    return io.BytesIO(content)


def test_a_batch_that_is_made_again_is_the_same(services: Services) -> None:
    """Whoever takes over a request whose process died makes no second file, whatever the template is by now."""
    insert_template(services.engine)

    first = create_batch(services, _asked(), _file(), "key")
    change_template(services.engine, TEMPLATE_ID, status="paused")
    second = create_batch(services, _asked(), _file(), "key")

    assert {"batch_no": str(BATCH_ID), "status": "staging"} == first == second
    with services.engine.connect() as connection:
        assert 1 == connection.scalar(text("SELECT count(*) FROM audience_file"))


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"status": "paused"}, "paused"),
        ({"status": "offline"}, "offline"),
        ({"claim_start": NOW - timedelta(days=2), "claim_end": NOW - timedelta(days=1)}, "ended"),
        ({"claim_start": NOW + timedelta(days=1), "claim_end": NOW + timedelta(days=2)}, "scheduled"),
    ],
)
def test_a_template_that_is_not_active_is_told_by_its_status(
    services: Services, changed: dict[str, Any], status: str
) -> None:
    """By the clock, whatever word is stored."""
    insert_template(services.engine, **changed)

    with pytest.raises(Conflict) as refusal:
        create_batch(services, _asked(), _file(), "key")

    assert ("TEMPLATE_NOT_ACTIVE", status) == (refusal.value.code, refusal.value.evidence["current_status"])


def test_random_amounts_are_not_given_away(services: Services) -> None:
    """There is no pool to draw them from."""
    insert_template(services.engine, type="random_amount", amount_minor=None, pool={})

    with pytest.raises(Conflict) as refusal:
        create_batch(services, _asked(), _file(), "key")

    assert "TYPE_NOT_OFFERED" == refusal.value.code


@pytest.mark.parametrize(
    ("start_in", "good"),
    [
        (timedelta(hours=24), True),
        (timedelta(hours=48) - timedelta(seconds=1), True),
        (timedelta(hours=24) - timedelta(seconds=1), False),
        (timedelta(hours=48), False),
    ],
)
def test_a_start_lies_in_the_time_of_a_coming_template(services: Services, start_in: timedelta, good: bool) -> None:
    """From its first instant to before its end."""
    insert_template(services.engine, claim_start=NOW + timedelta(days=1), claim_end=NOW + timedelta(days=2))
    asked = _asked(start_at=NOW + start_in)

    if good:
        assert "staging" == create_batch(services, asked, _file(), "key")["status"]
    else:
        with pytest.raises(InvalidInput, match="start_at"):
            create_batch(services, asked, _file(), "key")


def test_a_refused_batch_leaves_nothing(services: Services) -> None:
    """Neither a row nor a message."""
    insert_template(services.engine)

    with pytest.raises(AudienceFileError, match="no rows"):
        create_batch(services, _asked(), _file(b"user_id\n"), "key")

    assert [] == services.post.sent  # type: ignore[attr-defined]  # it is the test's post box
    assert [] == read_page(services, limit=1)


def test_a_parquet_file_is_kept_whole(services: Services) -> None:
    """It is read from its end, and stored from its beginning."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    insert_template(services.engine)
    sink = io.BytesIO()
    pq.write_table(pa.table({"user_id": [f"u{number}" for number in range(1_000)]}), sink)

    create_batch(services, _asked(file_name="a.parquet"), io.BytesIO(sink.getvalue()), "key")

    with services.engine.connect() as connection:
        assert sink.getvalue() == bytes(connection.scalar(text("SELECT content FROM audience_file")))
    assert (BatchPolicy.ALL_OR_NOTHING, "a.parquet") == (
        read_one(services, BATCH_ID).policy,
        read_one(services, BATCH_ID).file_name,
    )


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        (None, None),
        ("", None),
        ("C:\\lists\\a.csv", "a.csv"),
        ("../../etc/passwd", "passwd"),
        ("a\x00\n.csv", "a__.csv"),
        ("名单.csv", "名单.csv"),
        ("x" * 300 + ".csv", "x" * 196 + ".csv"),
    ],
)
def test_a_file_name_is_kept_as_a_name(name: str | None, stored: str | None) -> None:
    """Without folders and control characters, and with its ending."""
    assert stored == stored_name(name)
