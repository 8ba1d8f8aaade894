"""A closed day as a file for a spreadsheet: the same bytes each time, for the same revision."""

from __future__ import annotations

import csv
import io

from coupon_workers.campaigns.failure_file import without_formula
from coupon_workers.finance.close_reading import CloseRow, DayClose

CLOSE_HEADER = (
    "date", "revision", "template_id", "template_name", "currency", "issued_count", "issued_amount", "redeemed_count",
    "redeemed_amount", "returned_count", "returned_amount", "expired_count", "expired_amount", "adjusted_amount",
    "expense_net",
)  # fmt: skip


def close_csv(close: DayClose) -> str:
    """A line a template and currency (RFC 4180), amounts in minor units; without a face value a field is empty."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(CLOSE_HEADER)
    for row in close.rows:
        writer.writerow([close.date, close.revision, *(_cell(row, name) for name in CLOSE_HEADER[2:])])
    return file.getvalue()


def _cell(row: CloseRow, name: str) -> str | int | None:
    value: str | int | None = getattr(row, name)
    return without_formula(value) if name == "template_name" and isinstance(value, str) else value
