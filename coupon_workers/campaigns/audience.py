"""An audience file: whatever its format, batches of users and of rows that name none (DESIGN 9)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import PurePath
from typing import BinaryIO

from coupon_workers.campaigns.audience_batch import AudienceBatch, AudienceCount
from coupon_workers.campaigns.audience_text import BLOCK_BYTES, UTF_8, AudienceText, read_blocks
from coupon_workers.campaigns.csv_audience import read_csv
from coupon_workers.campaigns.jsonl_audience import read_jsonl
from coupon_workers.errors import AudienceFileError

BATCH_ROWS = 10_000
"""Large enough for COPY, small enough to keep several."""

_PARQUET_MAGIC = b"PAR1"
_JSONL_NAMES = frozenset((".jsonl", ".ndjson", ".json"))
_PACKED = {
    b"PK\x03\x04": "is an Excel workbook or a ZIP file: save its sheet as CSV",
    b"\xd0\xcf\x11\xe0": "is an Excel workbook: save its sheet as CSV",
    b"\x1f\x8b": "is packed with gzip: unpack it first",
    b"\x28\xb5\x2f\xfd": "is packed with zstd: unpack it first",
}


class AudienceFormat(StrEnum):
    """What a file holds."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class Audience:
    """A file to be gone through once, from its beginning, never whole in memory.

    Gives batches of at most ``batch_rows`` rows; ``count`` is of those given so far. Row numbers are what a person
    sees: in CSV that of a spreadsheet (the header is 1, blank rows count, and so does a row of several lines: once), in
    JSONL the line, in Parquet the row, each from 1. A user may occur more than once.

    Opening reads the beginning, and raises ``AudienceFileError`` for what it shows: EMPTY_FILE, BINARY, NOT_PARQUET,
    NOT_JSONL. Iterating raises it for the rest: HEADER_MISSING, COLUMN_MISSING, COLUMN_AMBIGUOUS, COLUMN_TYPE,
    ENCODING, TRUNCATED, TOO_LARGE; rows given before are then void, too. A Parquet file must be seekable, or it is a
    ``ValueError``.
    """

    def __init__(self, stream: BinaryIO, name: str = "", batch_rows: int = BATCH_ROWS) -> None:
        self.count = AudienceCount()
        self._stream = stream
        self._blocks = read_blocks(stream)
        self._head = next(self._blocks, b"")
        self._batch_rows = batch_rows
        self._text: AudienceText | None = None
        self.format = format_of(self._head, name)
        if self.format is AudienceFormat.PARQUET and not stream.seekable():
            raise ValueError("a Parquet file is read from a seekable stream only")

    @property
    def encoding(self) -> str:
        """Of a text: UTF-8, until something else has been met."""
        return self._text.encoding if self._text else UTF_8

    def __iter__(self) -> Iterator[AudienceBatch]:
        for batch in self._batches():
            if any(batch):
                self.count.add(batch)
                yield batch

    def _batches(self) -> Iterator[AudienceBatch]:
        if self.format is AudienceFormat.PARQUET:
            # Its library takes 50 MiB, which processes that never see such a file need not have.
            from coupon_workers.campaigns.parquet_audience import read_parquet

            return read_parquet(self._stream, self._batch_rows)
        self._text = AudienceText(self._all_blocks())
        read = read_jsonl if self.format is AudienceFormat.JSONL else read_csv
        return read(self._text, self._batch_rows)

    def _all_blocks(self) -> Iterator[bytes]:
        head, self._head = self._head, b""
        yield head
        yield from self._blocks


def format_of(head: bytes, name: str = "") -> AudienceFormat:
    """The format, by the first bytes of a file, and by its name where they do not tell.

    Raises ``AudienceFileError``: EMPTY_FILE, BINARY, NOT_PARQUET, NOT_JSONL.
    """
    suffix = PurePath(name.strip()).suffix.lower()
    if not head:
        raise AudienceFileError("EMPTY_FILE", "is empty")
    if head.startswith(_PARQUET_MAGIC) and (suffix == ".parquet" or b"\0" in head):
        return AudienceFormat.PARQUET
    for magic, message in _PACKED.items():
        if head.startswith(magic):
            raise AudienceFileError("BINARY", message)
    if suffix == ".parquet":
        raise AudienceFileError("NOT_PARQUET", "is no Parquet file, though its name says so")
    start = head[:BLOCK_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if suffix in _JSONL_NAMES and start == b"[":
        raise AudienceFileError("NOT_JSONL", "is one JSON list: JSONL has an object in each line")
    return AudienceFormat.JSONL if start == b"{" or suffix in _JSONL_NAMES else AudienceFormat.CSV
