"""An audience from JSONL: in each line an object with ``user_id``, or the bare id (API.md, Conventions)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from coupon_workers.campaigns.audience_batch import AudienceBatch, AudienceRow, InvalidRow, shown
from coupon_workers.campaigns.audience_id import id_problem, trimmed
from coupon_workers.campaigns.audience_record import CutRecord, read_records
from coupon_workers.campaigns.csv_audience import COLUMN, RECORD_TOO_LONG
from coupon_workers.claiming.claim_request import MAX_EXACT
from coupon_workers.errors import AudienceFileError

NOT_JSON = "is not JSON"
NO_USER = f"has no {COLUMN}"
NOT_AN_ID = "is no id: a string, or an integer below 2^53"


def read_jsonl(blocks: Iterable[str], batch_rows: int) -> Iterator[AudienceBatch]:
    """The rows of a JSONL text, which needs not be whole in memory. Row numbers are those of lines, from 1.

    Raises ``AudienceFileError``: EMPTY_FILE, and what ``blocks`` raises.
    """
    row_no, rows = 1, 0
    for lines in read_records(blocks, quotes=False):
        if isinstance(lines, CutRecord):
            yield AudienceBatch([], [InvalidRow(row_no, shown(lines), RECORD_TOO_LONG)])
            row_no, rows = row_no + 1, rows + 1
            continue
        for at in range(0, len(lines), batch_rows):
            batch = _read(lines[at : at + batch_rows], row_no + at)
            rows += len(batch.valid) + len(batch.invalid)
            yield batch
        row_no += len(lines)
    if not rows:
        raise AudienceFileError("EMPTY_FILE", "is empty")


def _read(lines: list[str], first_row: int) -> AudienceBatch:
    batch = AudienceBatch([], [], sum(not trimmed(line) for line in lines))
    for row_no, line in enumerate(lines, first_row):
        if not trimmed(line):
            continue
        value, problem = _value_in(line)
        if problem is None:
            value = trimmed(value)
            problem = id_problem(value)
        if problem is None:
            batch.valid.append(AudienceRow(row_no, value))
        else:
            batch.invalid.append(InvalidRow(row_no, shown(value), problem))
    return batch


def _value_in(line: str) -> tuple[str, str | None]:
    """The text of the id, or what is wrong and where."""
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):  # so many digits, or brackets, that Python gives up
        return line, NOT_JSON
    if isinstance(found, dict):
        if COLUMN not in found:
            return line, NO_USER
        found = found[COLUMN]
    if isinstance(found, str):
        return found, None
    if type(found) is int and abs(found) < MAX_EXACT:
        return str(found), None
    return line, NOT_AN_ID
