"""What reading an audience gives: batches of rows, good and bad, and how many of each there were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SHOWN_LENGTH = 64
"""Characters of a bad value that are kept: as many as a good one may have."""


class AudienceRow(NamedTuple):
    """A user of the audience; ``row_no`` is where a person finds it in the file, see ``Audience``."""

    row_no: int
    user_id: str


class InvalidRow(NamedTuple):
    """A row without a usable user. ``value`` is printable and shortened; ``reason`` goes on where it ends."""

    row_no: int
    value: str
    reason: str


class AudienceBatch(NamedTuple):
    """Some rows of the file, those of a kind in its order. ``blank`` rows are skipped, and counted."""

    valid: list[AudienceRow]
    invalid: list[InvalidRow]
    blank: int = 0


@dataclass(slots=True)
class AudienceCount:
    """What was read so far: ``rows`` are those that are not blank, so that they add up."""

    valid: int = 0
    invalid: int = 0
    blank: int = 0

    @property
    def rows(self) -> int:
        """Valid and invalid ones. The header is none."""
        return self.valid + self.invalid

    def add(self, batch: AudienceBatch) -> None:
        """Count a batch in."""
        self.valid += len(batch.valid)
        self.invalid += len(batch.invalid)
        self.blank += batch.blank


def shown(value: str) -> str:
    """A value for people and for any store: its beginning, with escapes for what cannot be printed."""
    head = value[:SHOWN_LENGTH]
    if not head.isprintable():
        head = "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in head)
    return head + "…" if len(value) > SHOWN_LENGTH else head
