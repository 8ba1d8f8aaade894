"""When a job is due: pure functions of the last logical run and the present instant (DESIGN 10).

A logical instant is when a run was meant to happen. It depends on the trigger alone, never on when somebody looked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Trigger(Protocol):
    """What makes a job due."""

    @property
    def period(self) -> timedelta:
        """The usual time between two runs."""

    def due(self, after: datetime | None, now: datetime) -> list[datetime]:
        """The logical instants to run that lie after ``after`` and not after ``now``, in order, in UTC.

        ``after`` None: the job never ran, and its newest instant is due.
        """


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
        dates = (first + timedelta(days=n) for n in range((today - first).days + 1))
        instants = sorted({datetime.combine(date, self.at, zone).astimezone(UTC) for date in dates})
        due = [instant for instant in instants if instant <= now and (after is None or instant > after)]
        return due if after else due[-1:]
