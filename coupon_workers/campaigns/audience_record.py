"""Text, block by block, cut into records: lines, of which a quoted field may hold several (RFC 4180).

A newline is ``\\n``, ``\\r\\n`` or ``\\r``, mixed as they come. A quote opens a field only at its beginning; elsewhere
it is a character like any other, as spreadsheets have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from coupon_workers.errors import AudienceFileError

MAX_RECORD_LENGTH = 1024 * 1024
"""Characters. A longer record is skipped without keeping it: a line may be as long as the file."""

HEAD_LENGTH = 256
"""Characters that are kept of it, to show."""

# Atomic throughout: what does not match is found out in one pass.
_FIELD = r'(?:"[^"]*+(?:""[^"]*+)*+"[^,\r\n]*+|[^",\r\n][^,\r\n]*+|)'
_RECORD = re.compile(rf"({_FIELD}(?:,{_FIELD})*+)(?:\r\n|\n|\r)")
_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"([^,]*+)|([^,]*+)')
_FIELD_END = re.compile(r"[,\r\n]")
_LINE_END = re.compile(r"[\r\n]")


class CutRecord(str):
    """The beginning of a record that was too long."""

    __slots__ = ()


def read_records(blocks: Iterable[str], *, quotes: bool) -> Iterator[list[str] | CutRecord]:
    """The records of a text without their newlines, as lists of some, or one that was too long.

    Blank ones are there, too. ``quotes``: whether fields may be quoted. Raises ``AudienceFileError``, TRUNCATED, when
    the text ends within quotes.
    """
    rest, number, skip = "", 1, None
    for block in blocks:
        text = rest + block
        # The other half of a \r\n may come with the next block.
        held = "\r" if text.endswith("\r") else ""
        text = text[: len(text) - len(held)]
        if skip is not None:
            end = skip.end_in(text)
            if end < 0:
                rest = held
                continue
            yield skip.record
            number, skip, text = number + 1, None, text[end:]
        records, rest = _split(text, quotes)
        number += len(records)
        yield from _bounded(records, len(text))
        if len(rest) > MAX_RECORD_LENGTH:
            skip = _Skip(rest, quotes)
            rest = ""
        rest += held
    if skip is not None:
        if skip.end_in(rest + "\n") < 0:
            raise _unclosed(number)
        yield skip.record
    elif rest:
        records, open_quote = _split(rest + "\n", quotes)
        yield from _bounded(records, len(rest))
        if open_quote:
            raise _unclosed(number + len(records))


def split_fields(record: str) -> list[str]:
    """The fields of a record, as ``csv.reader`` has them, however long they are."""
    fields, at = [], 0
    while at <= len(record):
        found = _QUOTED.match(record, at)
        assert found is not None  # its last branch matches anything
        quoted, after, plain = found.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"') + after)
        at = found.end() + 1
    return fields


def _split(text: str, quotes: bool) -> tuple[list[str], str]:
    """The whole records of a text that does not end between ``\\r`` and ``\\n``, and what comes after them."""
    if not quotes or '"' not in text:
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        *records, rest = text.split("\n")
        return records, rest
    records, at = [], 0
    while found := _RECORD.match(text, at):
        records.append(found[1])
        at = found.end()
    return records, text[at:]


def _bounded(records: list[str], length: int) -> Iterator[list[str] | CutRecord]:
    if length <= MAX_RECORD_LENGTH:
        if records:
            yield records
        return
    for record in records:
        yield [record] if len(record) <= MAX_RECORD_LENGTH else CutRecord(record[:HEAD_LENGTH])


def _unclosed(number: int) -> AudienceFileError:
    return AudienceFileError("TRUNCATED", f"ends within quotes that were opened in row {number}")


class _Skip:
    """Looks for the end of a record that is not kept."""

    def __init__(self, text: str, quotes: bool) -> None:
        self.record = CutRecord(text[:HEAD_LENGTH])
        self._in_field_end = _FIELD_END if quotes else _LINE_END
        self._look = self._at_start if quotes else self._in_plain
        self.end_in(text)

    def end_in(self, text: str) -> int:
        """Where the next record begins in the text that comes next, or -1."""
        at = 0
        while at < len(text):
            at = self._look(text, at)
            if self._look == self._at_end:
                return at
        return -1

    def _at_start(self, text: str, at: int) -> int:
        if text[at] == '"':
            self._look = self._in_quotes
            return at + 1
        self._look = self._in_plain
        return at

    def _in_plain(self, text: str, at: int) -> int:
        found = self._in_field_end.search(text, at)
        if found is None:
            return len(text)
        self._look = self._at_start if found[0] == "," else self._at_end
        return found.end() + (text[found.start() : found.start() + 2] == "\r\n")

    def _in_quotes(self, text: str, at: int) -> int:
        end = text.find('"', at)
        if end < 0:
            return len(text)
        self._look = self._after_quote
        return end + 1

    def _after_quote(self, text: str, at: int) -> int:
        if text[at] == '"':
            self._look = self._in_quotes
            return at + 1
        self._look = self._in_plain
        return at

    def _at_end(self, text: str, at: int) -> int:
        return at
