"""When a job is due: pure functions of the last logical run and the present instant (DESIGN 10).

A logical instant is when a run was meant to happen. It depends on the trigger alone, never on when somebody looked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


class Trigger(Protocol):
    """What makes a job due."""

    @property
    def period(self) -> timedelta:
        """The usual time between two runs."""

    def due(self, after: datetime | None, now: datetime) -> list[datetime]:
        """The logical instants to run that lie after ``after`` and not after ``now``, in order, in UTC.

        ``after`` None: the job never ran, and its newest instant is due.
        """

    def following(self, now: datetime) -> datetime:
        """The first logical instant after ``now``, in UTC."""

    @property
    def words(self) -> str:
        """The trigger as people say it: ``every 2 seconds``."""


@dataclass(frozen=True, slots=True)
class Every:
    """Every ``seconds`` seconds, at the multiples since 1970.

    Of several missed runs the newest stands for all, unless ``each`` is a run of its own: one that looks at the time
    since the last.
    """

    seconds: int
    each: bool = False

    @property
    def period(self) -> timedelta:
        """The usual time between two runs."""
        return timedelta(seconds=self.seconds)

    def due(self, after: datetime | None, now: datetime) -> list[datetime]:
        """The newest multiple, unless it has run; with ``each``, all that have not."""
        newest = _EPOCH + (now - _EPOCH) // self.period * self.period
        if after is not None and newest <= after:
            return []
        missed = 1 if after is None or not self.each else -((after - newest) // self.period)
        return [newest - number * self.period for number in reversed(range(missed))]

    def following(self, now: datetime) -> datetime:
        """The next multiple."""
        return _EPOCH + ((now - _EPOCH) // self.period + 1) * self.period

    @property
    def words(self) -> str:
        """In the largest unit that divides it."""
        size, unit = next((size, unit) for size, unit in _UNITS if self.seconds % size == 0)
        count = self.seconds // size
        every = f"every {unit}" if count == 1 else f"every {count} {unit}s"
        return f"{every}, each missed one too" if self.each else every


@dataclass(frozen=True, slots=True)
class Daily:
    """Every day at the local time ``at`` of ``zone``; each missed day is due.

    One run a local date, whatever the clocks do: a time that occurs twice counts when it first occurs, and one that is
    skipped happens as long after the skip as it was meant to happen after its beginning.
    """

    at: time
    zone: str = "UTC"

    @property
    def period(self) -> timedelta:
        """The usual time between two runs."""
        return timedelta(days=1)

    def due(self, after: datetime | None, now: datetime) -> list[datetime]:
        """The instant of each local date."""
        zone = ZoneInfo(self.zone)
        today = now.astimezone(zone).date()
        # Never ran: the newest instant is at most two local dates back, where a zone skips a whole date.
        first = after.astimezone(zone).date() if after else today - timedelta(days=2)
        instants = self._instants(first, today)
        due = [instant for instant in instants if instant <= now and (after is None or instant > after)]
        return due if after else due[-1:]

    def following(self, now: datetime) -> datetime:
        """The instant of the next local date that has one to come."""
        today = now.astimezone(ZoneInfo(self.zone)).date()
        # A skipped time may happen on the date after its own; a skipped date happens with the next one.
        instants = self._instants(today - timedelta(days=1), today + timedelta(days=2))
        return next(instant for instant in instants if instant > now)

    @property
    def words(self) -> str:
        """With the zone, whose clock it goes by."""
        return f"every day at {self.at:%H:%M} {self.zone}, each missed one too"

    def _instants(self, first: date, last: date) -> list[datetime]:
        zone = ZoneInfo(self.zone)
        dates = (first + timedelta(days=n) for n in range((last - first).days + 1))
        return sorted({datetime.combine(day, self.at, zone).astimezone(UTC) for day in dates})
