"""The bytes of a text file, block by block, as text: UTF-8, or GBK where it is that without doubt."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

from coupon_workers.errors import AudienceFileError

BLOCK_BYTES = 128 * 1024
"""What is read at once: some 10,000 rows, and small beside everything else."""

SAMPLE_BYTES = 64 * 1024
"""What an encoding is guessed from, from the first line on that has more than ASCII."""

UTF_8, GBK = "utf-8", "gb18030"
"""GBK is read as GB18030, which contains it."""

_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAVE_AS = "save it as UTF-8"


def read_blocks(stream: BinaryIO, head: bytes = b"") -> Iterator[bytes]:
    """The blocks of a stream of which ``head`` was read before. Full ones, however little each read gives."""
    block = head
    while True:
        while len(block) < BLOCK_BYTES and (more := stream.read(BLOCK_BYTES - len(block))):
            block += more
        if not block:
            return
        yield block
        block = b""


class AudienceText:
    """The text of a file, once. ``encoding`` is known when something else than ASCII has come: until then, UTF-8.

    Raises ``AudienceFileError``: ENCODING, BINARY, TRUNCATED.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.encoding = UTF_8
        self._blocks = blocks
        self._decoder: codecs.IncrementalDecoder | None = None
        self._read_bytes = 0
        self._read_lines = 0

    def __iter__(self) -> Iterator[str]:
        for number, block in enumerate(self._blocks):
            if number == 0 and block.startswith(_UTF_16_MARKS):
                raise AudienceFileError("ENCODING", f"is in UTF-16: {_SAVE_AS}")
            if self._decoder is None and not block[-SAMPLE_BYTES:].isascii() and block[:-SAMPLE_BYTES].isascii():
                block += next(self._blocks, b"")  # what tells the encoding may lie there
            self._refuse_binary(block)
            text = self._decode(block)
            if number == 0:
                text = text.removeprefix("\ufeff")
            self._read_bytes += len(block)
            self._read_lines += _newlines(block)
            yield text
        if self._decoder and self._decoder.getstate()[0]:
            raise AudienceFileError("TRUNCATED", "ends in the middle of a character")

    def _refuse_binary(self, block: bytes) -> None:
        at = block.find(b"\0")
        if at < 0:
            return
        if block.count(b"\0") * 4 > len(block):
            raise AudienceFileError("ENCODING", f"is in UTF-16 or UTF-32: {_SAVE_AS}")
        raise AudienceFileError("BINARY", f"is no text: it has a NUL at {self._place(block, at)}")

    def _decode(self, block: bytes) -> str:
        if self._decoder is None:
            if block.isascii():
                return block.decode("ascii")
            self.encoding = self._encoding_of(block)
            self._decoder = codecs.getincrementaldecoder(self.encoding)()
        waiting = len(self._decoder.getstate()[0])
        try:
            return self._decoder.decode(block)
        except UnicodeDecodeError as error:
            place = self._place(block, max(error.start - waiting, 0))
            raise AudienceFileError("ENCODING", f"is not {_name(self.encoding)} throughout: see {place}") from error

    def _encoding_of(self, block: bytes) -> str:
        try:
            codecs.getincrementaldecoder(UTF_8)().decode(block)
        except UnicodeDecodeError as error:
            guess = guess_encoding(block)
            if guess == GBK:
                return GBK
            place = self._place(block, error.start)
            if guess is None or block.startswith(codecs.BOM_UTF8):
                raise AudienceFileError("ENCODING", f"is not UTF-8: see {place}") from error
            raise AudienceFileError("ENCODING", f"is not UTF-8 (maybe {guess}): see {place}; {_SAVE_AS}") from error
        return UTF_8

    def _place(self, block: bytes, at: int) -> str:
        line = self._read_lines + _newlines(block[:at]) + 1
        return f"line {line}, byte {self._read_bytes + at + 1} of the file"


def guess_encoding(block: bytes) -> str | None:
    """The encoding that a block without UTF-8 seems to have. GBK wins where it is as likely as another."""
    # Here, for the few files that need it.
    from charset_normalizer import from_bytes

    first = next(at for at, byte in enumerate(block) if byte >= 0x80)
    start = max(block.rfind(b"\n", 0, first), block.rfind(b"\r", 0, first)) + 1
    sample = block[start : start + SAMPLE_BYTES]
    end = max(sample.rfind(b"\n"), sample.rfind(b"\r"))
    found = from_bytes(sample[: end + 1] if end > first - start else sample)
    best = found.best()
    if best is None or block.startswith(codecs.BOM_UTF8):
        return None
    likely = {match.encoding for match in found if match.chaos <= best.chaos}
    return GBK if likely & {GBK, "gbk", "gb2312"} else best.encoding


def _newlines(block: bytes) -> int:
    return block.count(b"\n") or block.count(b"\r")


def _name(encoding: str) -> str:
    return "GBK" if encoding == GBK else "UTF-8"
