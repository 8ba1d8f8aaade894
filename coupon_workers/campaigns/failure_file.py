"""failures.csv: the rows of a batch that got no coupon, and why (API.md, Campaign batches)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

FAILURE_HEADER = ("row", "value", "reason")

_FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
"""What makes a spreadsheet compute a cell, in some of them also in full width (OWASP, CSV Injection)."""


class _Line:
    """Takes what ``csv`` writes, and gives it back."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text = text


def failure_lines(failures: Iterable[tuple[int, str, str]]) -> Iterator[str]:
    """Lines of CSV, with their newlines (RFC 4180), of (row number, value, reason); the header comes first.

    A text that a spreadsheet would take for a formula has an apostrophe put before it.
    """
    line = _Line()
    writer = csv.writer(line)
    writer.writerow(FAILURE_HEADER)
    yield line.text
    for row_no, value, reason in failures:
        writer.writerow((row_no, without_formula(value), without_formula(reason)))
        yield line.text


def without_formula(text: str) -> str:
    """The text, such that a spreadsheet shows it and does not compute it."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
