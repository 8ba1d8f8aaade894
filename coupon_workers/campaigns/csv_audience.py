"""An audience from CSV: a header with a column ``user_id``, somewhere, and a user in each row below."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from coupon_workers.campaigns.audience_batch import AudienceBatch, InvalidRow, shown
from coupon_workers.campaigns.audience_id import read_cells, trimmed
from coupon_workers.campaigns.audience_record import MAX_RECORD_LENGTH, CutRecord, read_records, split_fields
from coupon_workers.errors import AudienceFileError

COLUMN = "user_id"
RECORD_TOO_LONG = f"is a row of more than {MAX_RECORD_LENGTH} characters"

_NAMES_SHOWN = 10
_NAME_SHOWN_LENGTH = 32


def read_csv(blocks: Iterable[str], batch_rows: int) -> Iterator[AudienceBatch]:
    """The rows of a CSV text, which needs not be whole in memory.

    Row numbers count records from 1, blank ones and the header too: what a spreadsheet shows, where a field with
    several lines is one row. Raises ``AudienceFileError``: EMPTY_FILE, HEADER_MISSING, COLUMN_MISSING,
    COLUMN_AMBIGUOUS, TRUNCATED, and what ``blocks`` raises.
    """
    column, row_no = -1, 1
    for records in read_records(blocks, quotes=True):
        if isinstance(records, CutRecord):
            if column < 0:
                raise AudienceFileError("HEADER_MISSING", f"has no header: row {row_no} is too long to be one")
            yield AudienceBatch([], [InvalidRow(row_no, shown(records), RECORD_TOO_LONG)])
            row_no += 1
            continue
        start = 0
        if column < 0:
            blank = next((at for at, record in enumerate(records) if not _is_blank(split_fields(record))), len(records))
            yield AudienceBatch([], [], blank)
            if blank < len(records):
                column = _column_in(split_fields(records[blank]))
            start = blank + 1
        for at in range(start, len(records), batch_rows):
            yield _read(records[at : at + batch_rows], column, row_no + at)
        row_no += len(records)
    if column < 0:
        raise AudienceFileError("EMPTY_FILE", "is empty")


def _read(records: list[str], column: int, first_row: int) -> AudienceBatch:
    text = "\n".join(records)
    if column == 0 and "," not in text and '"' not in text:
        return read_cells(records, first_row, lambda _: True)
    # The module's limit is one of the process; it does not split what is longer.
    if max(map(len, records)) <= csv.field_size_limit():
        rows = list(csv.reader(records))
    else:
        rows = [split_fields(record) for record in records]
    cells = [row[column] if len(row) > column else "" for row in rows]
    return read_cells(cells, first_row, lambda at: _is_blank(rows[at]))


def _is_blank(fields: Iterable[str]) -> bool:
    return not any(map(trimmed, fields))


def _column_in(header: list[str]) -> int:
    names = [trimmed(name) for name in header]
    found = [at for at, name in enumerate(names) if name.lower() == COLUMN]
    if len(found) == 1:
        return found[0]
    if found:
        raise AudienceFileError("COLUMN_AMBIGUOUS", f"has {len(found)} columns {COLUMN}")
    if any(name.isdecimal() for name in names):
        raise AudienceFileError("HEADER_MISSING", f"has no header: its first row must name a column {COLUMN}")
    raise AudienceFileError(
        "COLUMN_MISSING", f"has no column {COLUMN}; its columns, separated by commas, are {list_names(names)}"
    )


def list_names(names: list[str]) -> str:
    """Names of columns for a message: the first ones, shortened."""
    listed = [shown(name[:_NAME_SHOWN_LENGTH]) for name in names[:_NAMES_SHOWN]]
    return ", ".join(f'"{name}"' for name in listed) + (", …" if len(names) > _NAMES_SHOWN else "")
