"""A statement from CSV: a header that names the columns, in any order, and an order in each row below."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from coupon_workers.campaigns.audience_id import trimmed
from coupon_workers.campaigns.audience_record import MAX_RECORD_LENGTH, CutRecord, read_records, split_fields
from coupon_workers.campaigns.csv_audience import list_names
from coupon_workers.errors import AudienceFileError
from coupon_workers.reconciliation.statement_row import FIELDS, Problem, StatementRow, read_row

_NEWLINE = re.compile(r"\r\n|\n|\r")

BadLine = tuple[int, list[Problem]]
"""The line of the file, from 1, and what is wrong with it; the field is empty where it is the line as a whole."""


def read_statement(blocks: Iterable[str]) -> Iterator[StatementRow | BadLine]:
    """The rows of a CSV text, which needs not be whole in memory; blank lines are skipped.

    Raises ``AudienceFileError``: EMPTY_FILE, HEADER_MISSING, COLUMN_MISSING, COLUMN_AMBIGUOUS, COLUMN_UNKNOWN,
    TRUNCATED, and what ``blocks`` raises.
    """
    places: list[int] | None = None
    width = 0
    for line_no, record in _numbered(blocks):
        if isinstance(record, CutRecord):
            if places is None:
                raise AudienceFileError("HEADER_MISSING", f"has no header: line {line_no} is too long to be one")
            yield line_no, [("", f"is a row of more than {MAX_RECORD_LENGTH} characters")]
            continue
        fields = _fields(record)
        if not any(fields):
            continue
        if places is None:
            places, width = _places(fields), len(fields)
        elif len(fields) != width:
            yield line_no, [("", f"has {len(fields)} fields, and the header has {width}")]
        else:
            row = read_row(line_no, [fields[place] for place in places])
            yield row if isinstance(row, StatementRow) else (line_no, row)
    if places is None:
        raise AudienceFileError("EMPTY_FILE", "is empty: a day without orders has a header still")


def _numbered(blocks: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Each record with the line on which it begins: a quoted field may have several."""
    line_no = 1
    for records in read_records(blocks, quotes=True):
        for record in [records] if isinstance(records, CutRecord) else records:
            yield line_no, record
            line_no += 1
            if '"' in record:
                line_no += len(_NEWLINE.findall(record))


def _fields(record: str) -> list[str]:
    if '"' not in record:
        return [trimmed(field) for field in record.split(",")]
    if len(record) > csv.field_size_limit():
        return [trimmed(field) for field in split_fields(record)]
    return [trimmed(field) for field in next(csv.reader([record]))]


def _places(header: list[str]) -> list[int]:
    """Where each of ``FIELDS`` stands."""
    names = [name.lower() for name in header]
    known = [name for name in names if name in FIELDS]
    if not known:
        raise AudienceFileError("HEADER_MISSING", f"has no header: its first row must name {', '.join(FIELDS)}")
    if len(set(known)) < len(known):
        twice = next(name for name in known if known.count(name) > 1)
        raise AudienceFileError("COLUMN_AMBIGUOUS", f"has {known.count(twice)} columns {twice}")
    if missing := [name for name in FIELDS if name not in names]:
        raise AudienceFileError(
            "COLUMN_MISSING", f"has no column {', '.join(missing)}; its columns are {list_names(header)}"
        )
    if len(names) > len(FIELDS):
        unknown = [name for name in header if name.lower() not in FIELDS]
        raise AudienceFileError("COLUMN_UNKNOWN", f"has columns that a statement does not have: {list_names(unknown)}")
    return [names.index(name) for name in FIELDS]
