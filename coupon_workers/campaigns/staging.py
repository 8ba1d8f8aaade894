"""Staging: the audience of a batch, from its file or from tags, becomes distinct users in shards (DESIGN 9).

All of it is one transaction: a worker that dies leaves the batch as it was, and the next one begins anew. Rows pass
through this process in blocks; what compares all of them with one another is done by PostgreSQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, cast

from sqlalchemy import Connection, column, insert, literal, select, table, text

from coupon_workers.approval.budget import above_budget, worst_cost_of
from coupon_workers.campaigns.audience import Audience
from coupon_workers.campaigns.batch import BatchStatus, Row, read_batch
from coupon_workers.campaigns.copy_in import copy_in
from coupon_workers.campaigns.reservation import end_batch
from coupon_workers.campaigns.stored_file import StoredFile
from coupon_workers.campaigns.tag_expression import TagExpressionError, read_tag_expression
from coupon_workers.campaigns.tag_sql import users_with
from coupon_workers.errors import AudienceFileError, Overtaken
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.templates.template_store import read_template

SHARD_MEMBERS = 10_000
"""Users of a shard, about: a few steps, so that small batches get their turn between those of big ones."""

MOST_SHARDS = 100

STATEMENT_TIMEOUT_MS = 300_000
"""Of a statement that goes through the whole audience."""

_KIND = 1_836_213_607
"""The first half of the advisory lock of a batch's staging: a number of no meaning, taken by nobody else."""

_TURN = text("SELECT pg_try_advisory_xact_lock(:kind, hashint8(:batch_id))")

# Temporary tables have no index, and all of each is wanted.
_LARGE = f"""
    SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS};
    SET LOCAL work_mem = '32MB';
    SET LOCAL jit = off;
    SET LOCAL enable_seqscan = on;
    CREATE TEMPORARY TABLE staged_row (row_no bigint, user_id text COLLATE "C") ON COMMIT DROP;
    CREATE TEMPORARY TABLE staged_user (row_no bigint, user_id text COLLATE "C") ON COMMIT DROP;
"""

_STAGED_USER = table("staged_user", column("row_no"), column("user_id"))

_DISTINCT = text("INSERT INTO staged_user SELECT min(row_no), user_id FROM staged_row GROUP BY user_id")

_DUPLICATES = text(
    """
    INSERT INTO batch_failure (batch_id, row_no, value, reason, detail)
    SELECT :batch_id, r.row_no, r.user_id, 'DUPLICATE', 'is in row ' || u.row_no || ' already'
      FROM staged_row r JOIN staged_user u USING (user_id) WHERE r.row_no <> u.row_no ORDER BY r.row_no
    """
)

# Of SHA-256 the first four bytes: the same on any server, of any version.
_MEMBERS = text(
    """
    WITH sharded AS (
        SELECT row_no, user_id,
               CAST(CAST('x' || encode(substr(sha256(convert_to(user_id, 'UTF8')), 1, 4), 'hex') AS bit(32)) AS bigint)
               % :shards AS shard
          FROM staged_user
    ), member AS (
        INSERT INTO audience_member (batch_id, shard, member_no, user_id, row_no)
        SELECT :batch_id, shard, row_number() OVER (PARTITION BY shard ORDER BY row_no, user_id), user_id, row_no
          FROM sharded
        RETURNING shard
    )
    INSERT INTO issue_shard (batch_id, shard, member_count, updated_at)
    SELECT :batch_id, shard, count(*), :now FROM member GROUP BY shard
    """
)

_COUNT = text(
    """
    UPDATE issue_batch
       SET status = :status, shard_count = :shards, needs_approval = :needs_approval, row_count = :rows,
           invalid_count = :invalid, blank_count = :blank, duplicate_count = :duplicate, audience_count = :audience,
           updated_at = :now
     WHERE batch_id = :batch_id AND status = 'staging'
    """
)
_FORGET_FILE = text("DELETE FROM audience_file WHERE batch_id = :batch_id")

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StagedCount:
    """``rows`` = ``invalid`` + ``duplicate`` + ``audience``, the distinct users; blank rows are none."""

    rows: int
    invalid: int
    blank: int
    duplicate: int
    audience: int


@dataclass(frozen=True, slots=True)
class Cut:
    """How an audience is cut into shards: each of about ``members`` users, but no more than ``most`` of them."""

    members: int
    most: int

    def shards(self, audience: int) -> int:
        """How many for so many users: 1 at least."""
        return max(1, min(self.most, -(-audience // self.members)))


def stage_batch(
    services: Services, batch_id: int, *, shard_members: int = SHARD_MEMBERS, most_shards: int = MOST_SHARDS
) -> str:
    """Read the audience of a batch that is ``staging``; the batch's status afterwards.

    It is then ``ready``, or ``failed`` with a reason when its file or its tags cannot be read or name nobody. In any
    other status, and while another worker stages it, nothing is done. A shard is a hash of the user modulo their
    number, from 0; one that would be empty has no row, and does not count. Raises ``NotFound`` ``BATCH_NOT_FOUND``, and
    ``StoreUnavailable``: then the batch is as it was.
    """
    try:
        with transaction(services.engine) as connection:
            if connection.scalar(_TURN, {"kind": _KIND, "batch_id": batch_id}):
                batch = read_batch(connection, batch_id)
                if batch["status"] == BatchStatus.STAGING:
                    _stage(services, connection, batch, Cut(shard_members, most_shards))
                    crash_point("stage.before_commit")
    except Overtaken:
        _log.info("staging_overtaken", batch_id=batch_id)
    with transaction(services.engine) as connection:
        return str(read_batch(connection, batch_id)["status"])


def _stage(services: Services, connection: Connection, batch: Row, cut: Cut) -> None:
    batch_id = batch["batch_id"]
    connection.exec_driver_sql(_LARGE)
    try:
        with connection.begin_nested():  # rows that came before the file turned out unreadable are void
            count = _read_file(connection, batch) if batch["tags"] is None else _read_tags(connection, batch["tags"])
    except AudienceFileError as error:
        _fail(services, connection, batch_id, f"{error.code}: {error.errors[0][1]}")
        return
    except TagExpressionError as error:
        _fail(services, connection, batch_id, f"TAGS: {error.errors[0][1]}")
        return
    now = services.clock()
    shards = _fill_shards(connection, batch_id, cut.shards(count.audience), now)
    _note(services, connection, batch_id, count, shards, now)
    if count.audience == 0:
        _fail(services, connection, batch_id, "NO_USERS: names no user at all")
        return
    connection.execute(_FORGET_FILE, {"batch_id": batch_id})
    _log.info("batch_staged", batch_id=batch_id, audience=count.audience, rows=count.rows)


def _read_file(connection: Connection, batch: Row) -> StagedCount:
    """Fill ``staged_user`` from the stored file, and write what is wrong in it. Raises ``AudienceFileError``."""
    batch_id = batch["batch_id"]
    stream = cast(BinaryIO, StoredFile(connection, batch_id))
    audience = Audience(stream, batch["file_name"] or "")
    for rows in audience:
        copy_in(connection, "staged_row", ("row_no", "user_id"), rows.valid)
        copy_in(
            connection,
            "batch_failure",
            ("batch_id", "row_no", "value", "reason", "detail"),
            [(batch_id, row_no, value, "INVALID", reason) for row_no, value, reason in rows.invalid],
        )
    count = audience.count
    connection.exec_driver_sql("ANALYZE staged_row")
    users = connection.execute(_DISTINCT).rowcount
    if users < count.valid:
        connection.execute(_DUPLICATES, {"batch_id": batch_id})
    return StagedCount(count.rows, count.invalid, count.blank, count.valid - users, users)


def _read_tags(connection: Connection, tags: str) -> StagedCount:
    """Fill ``staged_user`` with the users that an expression means. Raises ``TagExpressionError``."""
    users = users_with(read_tag_expression(tags)).subquery()
    rows = select(literal(0), users.c.user_id)
    found = connection.execute(insert(_STAGED_USER).from_select(["row_no", "user_id"], rows)).rowcount
    return StagedCount(found, 0, 0, 0, found)


def _fill_shards(connection: Connection, batch_id: int, shards: int, now: datetime) -> int:
    """Number the users of ``staged_user`` within their shards; how many shards have any."""
    return connection.execute(_MEMBERS, {"batch_id": batch_id, "shards": shards, "now": now}).rowcount


def _note(
    services: Services, connection: Connection, batch_id: int, count: StagedCount, shards: int, now: datetime
) -> None:
    """Write the counts, and hold the batch from here on: who ends it has come first, or waits for the commit."""
    counted = connection.execute(
        _COUNT,
        {
            "batch_id": batch_id,
            "status": BatchStatus.READY if count.audience else BatchStatus.STAGING,
            "shards": shards,
            "needs_approval": _needs_approval(services, connection, batch_id, count.audience),
            "rows": count.rows,
            "invalid": count.invalid,
            "blank": count.blank,
            "duplicate": count.duplicate,
            "audience": count.audience,
            "now": now,
        },
    )
    if counted.rowcount != 1:
        raise Overtaken("the batch was ended while it was staged")


def _needs_approval(services: Services, connection: Connection, batch_id: int, users: int) -> bool:
    """Whether so many users are too many, or their coupons may cost too much, for one person to decide."""
    above = services.settings.batch_approval_above
    if above is not None and users > above:
        return True
    template = read_template(connection, read_batch(connection, batch_id)["template_id"])
    return above_budget(services.settings, template["currency"], worst_cost_of(template, users))


def _fail(services: Services, connection: Connection, batch_id: int, reason: str) -> None:
    end_batch(connection, batch_id, BatchStatus.FAILED, reason, services.clock())
    _log.info("batch_not_staged", batch_id=batch_id, reason=reason)
