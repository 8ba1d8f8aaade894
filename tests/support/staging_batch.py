"""Batches that wait to be staged, and what became of them, read from the tables."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import text

from coupon_workers.runtime.services import Services
from tests.support.template import insert_template

_NUMBERS = count(2**52 + 1)

_BATCH = text(
    """
    INSERT INTO issue_batch (batch_id, template_id, name, policy, tags, file_name, created_by, created_at, updated_at)
    VALUES (:batch_id, 1, 'spring', 'best_effort', :tags, :file_name, 'key', now(), now())
    """
)
_PART = text("INSERT INTO audience_file VALUES (:batch_id, :part_no, :content)")


@dataclass(frozen=True, slots=True)
class Staged:
    """What there is of a batch. ``counts``: rows, invalid, blank, duplicate, audience."""

    status: str
    reason: str | None
    counts: tuple[int, ...]
    shard_count: int
    needs_approval: bool
    shards: dict[int, int]
    """Members of each."""

    members: list[tuple[int, int, str, int]]
    """Shard, number in it, user, row."""

    failures: list[tuple[int, str, str, str | None]]
    """Row, value, reason, detail."""

    parts: int
    """Of the file, as far as it is still stored."""

    @property
    def users(self) -> list[tuple[int, str]]:
        """Each with his row, in the order of the file."""
        return sorted((row_no, user_id) for _, _, user_id, row_no in self.members)


def _have_template(services: Services) -> None:
    with services.engine.connect() as connection:
        known = connection.scalar(text("SELECT count(*) FROM coupon_template WHERE template_id = 1"))
    if not known:
        insert_template(services.engine, template_id=1)


def waiting_batch(
    services: Services,
    content: bytes | None = None,
    *,
    name: str | None = "users.csv",
    tags: str | None = None,
    part_bytes: int = 1_000_000,
) -> int:
    """The identity of a batch that is ``staging``, with a file in parts of so many bytes, or with tags."""
    batch_id = next(_NUMBERS)
    _have_template(services)
    parts = range(0, len(content or b""), part_bytes)
    with services.engine.begin() as connection:
        connection.execute(_BATCH, {"batch_id": batch_id, "tags": tags, "file_name": None if tags else name})
        for part_no, start in enumerate(parts):
            part = (content or b"")[start : start + part_bytes]
            connection.execute(_PART, {"batch_id": batch_id, "part_no": part_no, "content": part})
    return batch_id


def staged(services: Services, batch_id: int) -> Staged:
    """The batch as it is now; counts add up, and so do members and shards."""
    with services.engine.connect() as connection:

        def rows(query: str) -> list[Any]:
            return [tuple(row) for row in connection.execute(text(query), {"batch_id": batch_id})]

        [batch] = rows(
            "SELECT status, reason, row_count, invalid_count, blank_count, duplicate_count, audience_count,"
            " shard_count, needs_approval FROM issue_batch WHERE batch_id = :batch_id"
        )
        found = Staged(
            batch[0],
            batch[1],
            batch[2:7],
            batch[7],
            batch[8],
            dict(rows("SELECT shard, member_count FROM issue_shard WHERE batch_id = :batch_id ORDER BY shard")),
            rows(
                "SELECT shard, member_no, user_id, row_no FROM audience_member WHERE batch_id = :batch_id ORDER BY 1, 2"
            ),
            rows(
                "SELECT row_no, value, reason, detail FROM batch_failure WHERE batch_id = :batch_id"
                " ORDER BY row_no, failure_id"
            ),
            len(rows("SELECT part_no FROM audience_file WHERE batch_id = :batch_id")),
        )
    total, invalid, _, duplicate, audience = found.counts
    assert total == invalid + duplicate + audience
    assert audience == len(found.members) == sum(found.shards.values())
    assert invalid + duplicate == len(found.failures)
    return found


def csv_of(users: list[str]) -> bytes:
    """A file of one column; the first user is in row 2."""
    return "\n".join(["user_id", *users, ""]).encode()


def parquet_of(users: list[str | None], row_group_size: int = 100_000) -> bytes:
    """The same in Parquet; the first user is in row 1."""
    file = io.BytesIO()
    pq.write_table(pa.table({"user_id": pa.array(users, pa.string())}), file, row_group_size=row_group_size)
    return file.getvalue()


def shard_by_model(user_id: str, shards: int) -> int:
    """The shard in which a user must be."""
    return int.from_bytes(hashlib.sha256(user_id.encode()).digest()[:4], "big") % shards
