"""Pairs of a user and a tag from a CSV, in batches; what an audience file may be, this may be, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from coupon_workers.campaigns.audience_batch import InvalidRow, shown
from coupon_workers.campaigns.audience_id import id_problem, trimmed
from coupon_workers.campaigns.audience_record import CutRecord, read_records, split_fields
from coupon_workers.campaigns.audience_text import AudienceText
from coupon_workers.campaigns.csv_audience import RECORD_TOO_LONG, list_names
from coupon_workers.campaigns.tag_expression import TAG_LENGTH
from coupon_workers.errors import AudienceFileError

COLUMNS = ("user_id", "tag")
BAD_TAG = f"has a tag without 1 to {TAG_LENGTH} printable characters"

Columns = tuple[int, int]
"""Where user and tag stand in a row."""


class TagRows(NamedTuple):
    """Some rows of the file: pairs of user and tag, rows without, and how many were blank."""

    valid: list[tuple[str, str]]
    invalid: list[InvalidRow]
    blank: int


def tag_problem(tag: str) -> str | None:
    """What keeps a text from being a tag that an expression can name, or None."""
    if 0 < len(tag) <= TAG_LENGTH and tag.isprintable() and tag == trimmed(tag):
        return None
    return BAD_TAG


def read_tag_rows(blocks: Iterator[bytes]) -> Iterator[TagRows]:
    """The rows of a CSV; their numbers are a spreadsheet's: the header is 1, and blank rows count.

    Raises ``AudienceFileError``: EMPTY_FILE, HEADER_MISSING, COLUMN_MISSING, COLUMN_AMBIGUOUS, and those of a text.
    """
    columns, row_no = None, 0
    for records in read_records(AudienceText(blocks), quotes=True):
        rows = TagRows([], [], 0)
        blank = 0
        for record in [records] if isinstance(records, CutRecord) else records:
            row_no += 1
            fields = split_fields(record)
            if not any(map(trimmed, fields)):
                blank += 1
            elif columns is None:
                columns = _columns_in(record, fields)
            elif isinstance(record, CutRecord):
                rows.invalid.append(InvalidRow(row_no, shown(record), RECORD_TOO_LONG))
            else:
                _sort(rows, row_no, fields, columns)
        yield rows._replace(blank=blank)
    if columns is None:
        raise AudienceFileError("EMPTY_FILE", "is empty")


def _sort(rows: TagRows, row_no: int, fields: list[str], columns: Columns) -> None:
    user_id, tag = (trimmed(fields[at]) if at < len(fields) else "" for at in columns)
    if problem := id_problem(user_id):
        rows.invalid.append(InvalidRow(row_no, shown(user_id), problem))
    elif problem := tag_problem(tag):
        rows.invalid.append(InvalidRow(row_no, shown(tag), problem))
    else:
        rows.valid.append((user_id, tag))


def _columns_in(record: str, header: list[str]) -> Columns:
    if isinstance(record, CutRecord):
        raise AudienceFileError("HEADER_MISSING", "has no header: its first row is too long to be one")
    names = [trimmed(name).lower() for name in header]
    for column in COLUMNS:
        if names.count(column) > 1:
            raise AudienceFileError("COLUMN_AMBIGUOUS", f"has {names.count(column)} columns {column}")
        if column not in names:
            shown_names = list_names(names)
            raise AudienceFileError(
                "COLUMN_MISSING", f"has no column {column}; its columns, separated by commas, are {shown_names}"
            )
    return names.index("user_id"), names.index("tag")
