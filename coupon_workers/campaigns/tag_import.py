"""Users' tags: from a CSV of the shop's, or a user at a time. Tags only matter to audiences by expression."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.campaigns.audience_batch import InvalidRow
from coupon_workers.campaigns.audience_text import read_blocks
from coupon_workers.campaigns.copy_in import copy_in
from coupon_workers.campaigns.tag_expression import TAG_LENGTH
from coupon_workers.campaigns.tag_rows import read_tag_rows, tag_problem
from coupon_workers.claiming.claim_request import user_id_problem
from coupon_workers.errors import InvalidInput
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

MOST_TAGS = 1_000
"""Of a user who is given them at once: a request, not a file."""

INVALID_NAMED = 10
"""Invalid rows that are named; the others are counted."""

STATEMENT_TIMEOUT_MS = 300_000

_KIND = 1_952_539_507
"""The first half of the advisory lock of a user's tags: a number of no meaning, taken by nobody else."""

_LARGE = f"""
    SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS};
    SET LOCAL work_mem = '32MB';
    SET LOCAL jit = off;
    CREATE TEMPORARY TABLE imported_tag (user_id text COLLATE "C", tag text COLLATE "C") ON COMMIT DROP;
"""

# Always in the same order: of two that write the same tags one waits, and neither for the other.
_ADD = text(
    "INSERT INTO user_tag (user_id, tag) SELECT DISTINCT user_id, tag FROM imported_tag ORDER BY user_id, tag"
    " ON CONFLICT DO NOTHING"
)
_PUT = text(
    "INSERT INTO user_tag (user_id, tag)"
    ' SELECT :user_id, tag FROM unnest(CAST(:tags AS text[])) AS t(tag) ORDER BY tag COLLATE "C"'
    " ON CONFLICT DO NOTHING"
)
_REMOVE = text("DELETE FROM user_tag WHERE user_id = :user_id AND tag <> ALL (CAST(:tags AS text[]))")
_READ = text('SELECT tag FROM user_tag WHERE user_id = :user_id ORDER BY tag COLLATE "C"')


@dataclass(frozen=True, slots=True)
class TagCount:
    """What came of a file: of ``rows``, blank ones apart, ``invalid`` were left out; ``added`` were not there before.

    ``named`` are the first of the invalid rows, by their numbers in the file.
    """

    rows: int
    added: int
    invalid: int
    blank: int
    named: tuple[InvalidRow, ...] = ()


def import_tags(services: Services, stream: BinaryIO) -> TagCount:
    """Add what a CSV with columns ``user_id`` and ``tag`` has, a pair a row, in any order; all of it or nothing.

    The file is never whole in memory, and may be imported again. Raises ``AudienceFileError`` for one that cannot be
    read (as ``Audience`` does for CSV) and ``StoreUnavailable``; nothing is written then.
    """
    valid = invalid = blank = 0
    named: list[InvalidRow] = []
    with transaction(services.engine) as connection:
        connection.exec_driver_sql(_LARGE)
        for rows in read_tag_rows(read_blocks(stream)):
            copy_in(connection, "imported_tag", ("user_id", "tag"), rows.valid)
            valid, invalid, blank = valid + len(rows.valid), invalid + len(rows.invalid), blank + rows.blank
            named += rows.invalid[: INVALID_NAMED - len(named)]
        added = connection.execute(_ADD).rowcount
        if added:
            record(connection, AuditAction.TAGS_IMPORT, "tags", after={"rows": valid + invalid, "added": added})
    return TagCount(valid + invalid, added, invalid, blank, tuple(named))


def put_tags(services: Services, user_id: str, tags: Iterable[str]) -> list[str]:
    """Give a user these tags and no other; they come back sorted, each once.

    A tag has 1 to 64 printable characters. Raises ``InvalidInput``, which names each bad one, and ``StoreUnavailable``.
    """
    wanted = sorted(dict.fromkeys(tags))
    _check(user_id, wanted)
    with transaction(services.engine) as connection:
        # One at a time a user: of two that come at once one has the last word, and they do not mix.
        connection.execute(
            text("SELECT pg_advisory_xact_lock(:kind, hashtext(:user_id))"), {"kind": _KIND, "user_id": user_id}
        )
        before = _tags_of(connection, user_id)
        connection.execute(_PUT, {"user_id": user_id, "tags": wanted})
        connection.execute(_REMOVE, {"user_id": user_id, "tags": wanted})
        after = _tags_of(connection, user_id)
        if after != before:
            facts = {"tags": before}, {"tags": after}
            record(connection, AuditAction.TAGS_SET, f"user:{user_id}", before=facts[0], after=facts[1])
        return after


def read_tags(services: Services, user_id: str) -> list[str]:
    """A user's tags, sorted; of one who is not known, none. Raises ``InvalidInput``, ``StoreUnavailable``."""
    _check(user_id, [])
    with transaction(services.engine) as connection:
        return _tags_of(connection, user_id)


def _tags_of(connection: Connection, user_id: str) -> list[str]:
    return list(connection.scalars(_READ, {"user_id": user_id}))


def _check(user_id: str, tags: list[str]) -> None:
    errors = []
    if problem := user_id_problem(user_id):
        errors.append(("user_id", problem))
    if len(tags) > MOST_TAGS:
        errors.append(("tags", f"must be {MOST_TAGS} tags at most"))
    elif any(map(tag_problem, tags)):
        errors.append(("tags", f"each must have 1 to {TAG_LENGTH} printable characters, no blanks around them"))
    if errors:
        raise InvalidInput(errors)
