"""An uploaded file as it lies in the database, ``audience_file``, read as a seekable stream."""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections import OrderedDict
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.errors import Overtaken

KEPT_PARTS = 4
"""Parts that stay in memory: one is read at a time, and Parquet goes back and forth between its pages."""

# A part's length is known without its content, which lies apart.
_PARTS = text("SELECT part_no, octet_length(content) FROM audience_file WHERE batch_id = :batch_id ORDER BY part_no")
_PART = text("SELECT content FROM audience_file WHERE batch_id = :batch_id AND part_no = :part_no")


class StoredFile(io.RawIOBase):
    """The parts of a batch's file, one after the other, whatever their numbers and lengths; empty without any.

    A part is fetched in the connection's transaction when something in it is asked for; a read is short at the end of
    the file only. Raises ``Overtaken`` when a part has been deleted since, and what the database raises.
    """

    def __init__(self, connection: Connection, batch_id: int) -> None:
        super().__init__()
        self._connection = connection
        self._batch_id = batch_id
        parts = [(number, length) for number, length in connection.execute(_PARTS, {"batch_id": batch_id}) if length]
        self._numbers: list[int] = [number for number, _ in parts]
        self._starts: list[int] = list(accumulate((length for _, length in parts), initial=0))
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._at = 0

    @property
    def size(self) -> int:
        """Of the whole file, in bytes."""
        return self._starts[-1]

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The offset in bytes of what is read next."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to an offset, which may lie beyond the end; the new one. ``ValueError`` for one before the beginning."""
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        if at < 0:
            raise ValueError("an offset before the beginning of the file")
        self._at = at
        return at

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, across parts; fewer bytes only at the end."""
        target = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(target) and self._at < self.size:
            index = bisect_right(self._starts, self._at) - 1
            start = self._at - self._starts[index]
            piece = memoryview(self._part(index))[start : start + len(target) - filled]
            target[filled : filled + len(piece)] = piece
            filled += len(piece)
            self._at += len(piece)
        return filled

    def _part(self, index: int) -> bytes:
        if index not in self._kept:
            place = {"batch_id": self._batch_id, "part_no": self._numbers[index]}
            content = self._connection.execute(_PART, place).scalar()
            if content is None:
                raise Overtaken("the file was deleted while it was read")
            if len(self._kept) >= KEPT_PARTS:
                self._kept.popitem(last=False)
            self._kept[index] = bytes(content)
        self._kept.move_to_end(index)
        return self._kept[index]
