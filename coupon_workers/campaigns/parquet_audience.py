"""An audience from Parquet: a column ``user_id`` of strings or integers, read in record batches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coupon_workers.campaigns.audience_batch import AudienceBatch, shown
from coupon_workers.campaigns.audience_id import read_cells, trimmed
from coupon_workers.campaigns.audience_record import HEAD_LENGTH
from coupon_workers.campaigns.csv_audience import COLUMN, list_names
from coupon_workers.errors import AudienceFileError

MAGIC = b"PAR1"
"""The first and the last four bytes of every Parquet file that is not encrypted."""

READ_BYTES = 1024 * 1024
"""What is read of a column at once."""

LONG_WORD_BYTES = 4 * HEAD_LENGTH
"""No id is as long: a batch of such texts would still be small."""

MAX_COLUMN_BYTES = 256 * 1024 * 1024
"""Of ``user_id`` in one row group, unpacked, by the file's own word: 64 MiB of file can hold any amount of sameness."""


def read_parquet(stream: BinaryIO, batch_rows: int) -> Iterator[AudienceBatch]:
    """The rows of a Parquet file. Row numbers count from 1, there being no header.

    The stream must be seekable: its directory is at its end. Raises ``AudienceFileError``: NOT_PARQUET, TRUNCATED,
    COLUMN_MISSING, COLUMN_AMBIGUOUS, COLUMN_TYPE.
    """
    _refuse_truncated(stream)
    try:
        yield from _read(stream, batch_rows)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's, not the file's
        raise AudienceFileError("NOT_PARQUET", f"is a damaged Parquet file: {shown(str(error))}") from error


def _read(stream: BinaryIO, batch_rows: int) -> Iterator[AudienceBatch]:
    plain = pq.ParquetFile(stream, buffer_size=READ_BYTES, pre_buffer=False)
    name, is_text = _column_in(plain.schema_arrow)
    _refuse_huge(plain.metadata, name)
    # Strings as their dictionary has them: slower, and a long one that thousands of rows share is there once.
    by_word = pq.ParquetFile(stream, buffer_size=READ_BYTES, pre_buffer=False, read_dictionary=[name])
    row_no = 1
    for group in range(plain.num_row_groups):
        file = by_word if is_text and _has_long_words(by_word, group, name) else plain
        for batch in file.iter_batches(batch_rows, row_groups=[group], columns=[name], use_threads=False):
            column = batch.column(0)
            yield read_cells(_texts(column), row_no, lambda _: False)
            row_no += len(column)


def _has_long_words(by_word: Any, group: int, name: str) -> bool:
    """Whether a row group's dictionary, which comes with its first row, has texts that had better not be multiplied."""
    first = next(by_word.iter_batches(1, row_groups=[group], columns=[name], use_threads=False), None)
    if first is None:
        return False
    longest = pc.max(pc.binary_length(first.column(0).dictionary)).as_py()
    return longest is not None and longest > LONG_WORD_BYTES


def _texts(column: Any) -> list[str]:
    if isinstance(column, pa.DictionaryArray):
        # Of a dictionary that may be that of the whole row group, the words of this batch.
        used = column.indices.unique().drop_null()
        words = [trimmed(word or "")[:HEAD_LENGTH] for word in column.dictionary.take(used).to_pylist()]
        word_at = dict(zip(used.to_pylist(), words, strict=True))
        return [word_at.get(index, "") for index in column.indices.to_pylist()]
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _column_in(schema: Any) -> tuple[str, bool]:
    """The column's name, and whether it has texts."""
    found = [field for field in schema if field.name.strip().lower() == COLUMN]
    if not found:
        raise AudienceFileError("COLUMN_MISSING", f"has no column {COLUMN}; its columns are {list_names(schema.names)}")
    if len(found) > 1:
        raise AudienceFileError("COLUMN_AMBIGUOUS", f"has {len(found)} columns {COLUMN}")
    kind = found[0].type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not is_text and not pa.types.is_integer(kind):
        raise AudienceFileError("COLUMN_TYPE", f"has {COLUMN} as {kind}: it must hold strings or integers")
    return found[0].name, is_text


def _refuse_truncated(stream: BinaryIO) -> None:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - len(MAGIC), 0))
    if size < 3 * len(MAGIC) or stream.read(len(MAGIC)) != MAGIC:
        raise AudienceFileError("TRUNCATED", "is a Parquet file without its end")
    stream.seek(0)


def _refuse_huge(metadata: Any, name: str) -> None:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for at in range(group.num_columns):
            column = group.column(at)
            if column.path_in_schema == name and column.total_uncompressed_size > MAX_COLUMN_BYTES:
                limit = MAX_COLUMN_BYTES // 1024**2
                raise AudienceFileError("TOO_LARGE", f"has more than {limit} MiB of {COLUMN} in row group {number}")
