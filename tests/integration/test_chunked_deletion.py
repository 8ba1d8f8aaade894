"""Deleting in chunks: when it ends, and what an outage amid it leaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, TextClause, event, text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.chunked_deletion import delete_in_chunks
from tests.support.lost_commit import commit_lost

CHUNK = 2
_DELETE = """
    DELETE FROM claim_set_aside WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM claim_set_aside WHERE bucket = :bucket LIMIT :chunk
    ))
"""
PLAIN = text(_DELETE)
WITHIN = text(f"WITH gone AS ({_DELETE} RETURNING 1) SELECT count(*) FROM gone")
BUCKET = {"bucket": 0}


def _fill(engine: Engine, count: int) -> None:
    """``count`` rows of the bucket, and one of another."""
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO claim_set_aside (template_id, bucket, entry_id, payload, reason, at)"
                " SELECT 1, CASE n WHEN 0 THEN 1 ELSE 0 END, n || '-0', '', 'no claim', now()"
                " FROM generate_series(0, :count) AS n"
            ),
            {"count": count},
        )


def _left(engine: Engine) -> list[tuple[int, int]]:
    """(bucket, rows)."""
    with engine.connect() as connection:
        found = connection.execute(text("SELECT bucket, count(*) FROM claim_set_aside GROUP BY bucket ORDER BY bucket"))
        return [(row[0], row[1]) for row in found]


@pytest.fixture
def commits(engine: Engine) -> Iterator[list[None]]:
    """One for each transaction that was committed."""
    seen: list[None] = []

    def note(_: object) -> None:
        seen.append(None)

    event.listen(engine, "commit", note)
    yield seen
    event.remove(engine, "commit", note)


@pytest.mark.parametrize("statement", [PLAIN, WITHIN])
@pytest.mark.parametrize(("count", "chunks"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3)])
def test_it_ends_with_a_chunk_that_is_short(
    engine: Engine, commits: list[None], statement: TextClause, count: int, chunks: int
) -> None:
    """Each chunk in a transaction of its own; whatever else is in the table stays."""
    _fill(engine, count)
    commits.clear()

    deleted = delete_in_chunks(engine, statement, BUCKET, CHUNK)

    assert (count, chunks) == (deleted, len(commits))
    assert [(1, 1)] == _left(engine)


def test_an_outage_amid_it_leaves_what_was_deleted_deleted(engine: Engine) -> None:
    """The third commit fails: two chunks are gone, the third is whole, and the next pass does the rest."""
    _fill(engine, 7)

    with commit_lost(engine, nth=3), pytest.raises(StoreUnavailable):
        delete_in_chunks(engine, PLAIN, BUCKET, CHUNK)
    left = _left(engine)
    again = delete_in_chunks(engine, PLAIN, BUCKET, CHUNK)

    assert ([(0, 3), (1, 1)], 3) == (left, again)
    assert [(1, 1)] == _left(engine)
