"""Receipts from a CSV file, row by row: what can be read, what was left out, and why (CASES 30)."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from coupon_workers.claiming.claim_request import user_id_problem
from coupon_workers.errors import InvalidInput
from coupon_workers.load.discount_rate import template_terms

COLUMNS = ("User_id", "Coupon_id", "Discount_rate", "Date_received")
"""The columns a replay needs, found by name; the file may have others, in any order."""

_NULL = "null"
_COUPON_ID_LENGTH = 64
_EXAMPLES = 5


class Receipt(NamedTuple):
    """One row: a user received a coupon. ``row`` is its number in the file, the header being 1."""

    row: int
    user_id: str
    coupon_id: str
    discount_rate: str
    date_received: str


@dataclass(slots=True)
class ReceiptCount:
    """Rows of a file: ``read`` + ``skipped`` + ``bad`` = all rows but the header; blank lines are skipped.

    ``skipped`` and ``bad`` map a reason to a count, ``examples`` a reason to the numbers of its first rows.
    """

    read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[int]] = field(default_factory=dict)

    def note(self, row: int, reason: str, kind: Counter[str]) -> None:
        """Count a row that was left out."""
        kind[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _EXAMPLES:
            examples.append(row)


def read_receipts(path: Path, count: ReceiptCount) -> Iterator[Receipt]:
    """The receipts of a file, streamed; ``count`` is told of every row.

    Raises ``InvalidInput`` when the file has no header or lacks columns. A bad row never ends the reading.
    """
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows = _rows(csv.reader(file))
        header = _header(next(rows, (1, [], None))[1])
        places = [header.index(name) for name in COLUMNS]
        for row, fields, problem in rows:
            if not fields and problem is None:
                count.note(row, "a blank line", count.skipped)
                continue
            if problem is None and len(fields) != len(header):
                problem = f"{len(fields)} fields under {len(header)} columns"
            values = [fields[place].strip() for place in places] if problem is None else []
            if problem is None and _NULL in values:
                count.note(row, f"{COLUMNS[values.index(_NULL)]} is null", count.skipped)
                continue
            problem = problem or _problem(values)
            if problem is not None:
                count.note(row, problem, count.bad)
                continue
            count.read += 1
            yield Receipt(row, *values)


def _rows(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str], str | None]]:
    """Number, fields and problem of each row; a row that no CSV reader can take is a problem, not an end."""
    row = 0
    while True:
        row += 1
        try:
            yield row, next(reader), None
        except StopIteration:
            return
        except csv.Error as error:
            yield row, [], str(error)


def _header(names: Sequence[str]) -> list[str]:
    header = [name.strip() for name in names]
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise InvalidInput([("header", f"the file has no column {', '.join(missing)}")])
    return header


def _problem(values: Sequence[str]) -> str | None:
    user_id, coupon_id, discount_rate, date_received = values
    problem = user_id_problem(user_id)
    if problem:
        return f"User_id {problem}"
    if not coupon_id.isprintable() or not 0 < len(coupon_id) <= _COUPON_ID_LENGTH:
        return f"Coupon_id must be 1 to {_COUPON_ID_LENGTH} printable characters"
    try:
        template_terms(discount_rate)
    except ValueError as error:
        return f"Discount_rate {error}"
    return _date_problem(date_received)


def _date_problem(date_received: str) -> str | None:
    try:
        if len(date_received) == 8 and date_received.isdecimal() and date_received.isascii():
            datetime.strptime(date_received, "%Y%m%d")  # noqa: DTZ007 - a date, not an instant
            return None
    except ValueError:
        pass
    return "Date_received is no date like 20160701"
