"""The rows of a batch that got no coupon, in the order of its audience, as the lines of failures.csv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import text

from coupon_workers.campaigns.batch import read_batch
from coupon_workers.campaigns.failure_file import failure_lines
from coupon_workers.errors import NotFound
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

PAGE_ROWS = 2_000
"""Rows in memory at once: some 100 KiB."""

# Of a batch that has just been issued the statistics know nothing: it would read and sort all that is left, each page.
_IN_ORDER = "SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off"

_PAGE = text(
    "SELECT row_no, failure_id, value, reason, detail FROM batch_failure"
    " WHERE batch_id = :batch_id AND (row_no, failure_id) > (:row_no, :failure_id)"
    " ORDER BY row_no, failure_id LIMIT :page_rows"
)


def failures_csv(services: Services, batch_id: int, page_rows: int = PAGE_ROWS) -> Iterator[bytes]:
    """The file in pieces, in UTF-8. No transaction is open between two of them, however slowly they are taken.

    The first page is read before this returns. Raises ``NotFound`` ``BATCH_NOT_FOUND``, or ``FAILURES_NOT_KEPT`` long
    after the batch's end; ``StoreUnavailable`` also from the iterator. A batch that runs has as many failures as were
    known when a page was read.
    """
    with transaction(services.engine) as connection:
        batch = read_batch(connection, batch_id)
    if batch["records"] != "kept":
        raise NotFound("FAILURES_NOT_KEPT", "the failures of a batch are kept for 90 days after its end")
    first = _read_page(services, batch_id, (-1, 0), page_rows)
    return _pieces(services, batch_id, first, page_rows)


def _pieces(services: Services, batch_id: int, page: Sequence[Any], page_rows: int) -> Iterator[bytes]:
    header, *lines = failure_lines(map(_failure, page))
    yield (header + "".join(lines)).encode()
    while len(page) == page_rows:
        page = _read_page(services, batch_id, (page[-1].row_no, page[-1].failure_id), page_rows)
        _, *lines = failure_lines(map(_failure, page))
        if lines:
            yield "".join(lines).encode()


def _read_page(services: Services, batch_id: int, after: tuple[int, int], page_rows: int) -> Sequence[Any]:
    row_no, failure_id = after
    named = {"batch_id": batch_id, "row_no": row_no, "failure_id": failure_id, "page_rows": page_rows}
    with transaction(services.engine) as connection:
        connection.exec_driver_sql(_IN_ORDER)
        return connection.execute(_PAGE, named).all()


def _failure(row: Any) -> tuple[int, str, str]:
    """``reason`` is the code, with what is wrong behind it where that is known: ``INVALID: is empty``."""
    return row.row_no, row.value, f"{row.reason}: {row.detail}" if row.detail else row.reason
