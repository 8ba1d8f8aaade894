"""Reading audiences in tests: short ways to do it, streams that are made while they are read, and a small model."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

from coupon_workers.campaigns.audience import Audience
from coupon_workers.campaigns.audience_batch import AudienceCount, AudienceRow, InvalidRow, shown
from coupon_workers.campaigns.audience_id import id_problem, trimmed

REASONS = {
    "empty": "is empty",
    "scientific": "is a number in scientific notation: the digits of the id are lost",
    "long": "has more than 64 characters",
    "space": "has a space in it",
    "invisible": "has a character that cannot be seen",
    "long row": "is a row of more than 1048576 characters",
}


class Read(NamedTuple):
    """A whole audience."""

    valid: list[AudienceRow]
    invalid: list[InvalidRow]
    count: AudienceCount


class MadeStream(io.RawIOBase):
    """Bytes that are made while they are read, and come in pieces of any length."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """One piece, or as much of it as there is room for."""
        self._rest = self._rest or next(self._pieces, b"")
        taken = self._rest[: len(buffer)]
        self._rest = self._rest[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)


def read_whole(content: bytes, name: str = "users.csv", batch_rows: int = 10_000) -> Read:
    """Everything in a file."""
    return gather(Audience(io.BytesIO(content), name, batch_rows))


def gather(audience: Audience) -> Read:
    """Everything that an audience gives."""
    batches = list(audience)
    valid = [row for batch in batches for row in batch.valid]
    invalid = [row for batch in batches for row in batch.invalid]
    return Read(valid, invalid, audience.count)


def read_by_model(text: str) -> Read:
    """What reading a CSV text must give, one character after the other."""
    records = model_records(text)
    first = next(at for at, fields in enumerate(records) if any(map(trimmed, fields)))
    column = [trimmed(name).lower() for name in records[first]].index("user_id")
    valid, invalid, blank = [], [], first
    for row_no, fields in enumerate(records[first + 1 :], first + 2):
        cell = fields[column] if len(fields) > column else ""
        problem = id_problem(trimmed(cell))
        if not any(map(trimmed, fields)):
            blank += 1
        elif problem:
            invalid.append(InvalidRow(row_no, shown(cell), problem))
        else:
            valid.append(AudienceRow(row_no, trimmed(cell)))
    return Read(valid, invalid, AudienceCount(len(valid), len(invalid), blank))


def model_records(text: str) -> list[list[str]]:
    """The fields of every record. ``ValueError`` when the text ends within quotes."""
    records: list[list[str]] = []
    fields, field, state, at = [], "", "start", 0
    while at < len(text):
        each, two = text[at], text[at : at + 2]
        at += 1
        if state == "quotes":
            if two == '""':
                field, at = field + '"', at + 1
            elif each == '"':
                state = "plain"
            else:
                field += each
        elif each == '"' and state == "start":
            state = "quotes"
        elif each == ",":
            fields, field, state = [*fields, field], "", "start"
        elif each in "\r\n":
            at += two == "\r\n"
            records.append([*fields, field])
            fields, field, state = [], "", "start"
        else:
            field, state = field + each, "plain"
    if state == "quotes":
        raise ValueError("the text ends within quotes")
    if fields or field or state != "start":
        records.append([*fields, field])
    return records
