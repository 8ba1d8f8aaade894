"""The days of a time zone: limits per day are limits per local date (DESIGN 12, case of the two 01:30).

Pure functions; time zones are IANA names known to ``zoneinfo``.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

_EPOCH_DAY = date(1970, 1, 1).toordinal()

MARGIN = timedelta(days=2)
"""Offsets reach this far beyond a window: clocks differ a little, and a late rejection still needs its day."""

_STEP_S = 24 * 3600
"""Two changes of a zone's offset are weeks apart (the closest are Morocco's, around Ramadan): none hides between two
looks."""


def local_day_number(instant: datetime, timezone: str) -> int:
    """Days from 1970-01-01 to the local date of ``instant`` in ``timezone``."""
    return instant.astimezone(ZoneInfo(timezone)).date().toordinal() - _EPOCH_DAY


def utc_offsets(timezone: str, start: datetime, end: datetime) -> list[tuple[int, int]]:
    """The offsets from UTC in force from two days before ``start`` to two days after ``end``, ascending.

    Pairs ``(from_s, offset_s)``: from that second since 1970 on, local time is UTC plus ``offset_s`` seconds. The
    first pair starts where the span does and also stands for whatever is earlier; every other is a transition, exact
    to the second. The day of an instant is ``(instant_s + offset_s) // 86400`` with the last pair that has begun.
    """
    zone = ZoneInfo(timezone)
    at, last = int((start - MARGIN).timestamp()), int((end + MARGIN).timestamp())
    offsets = [(at, _offset_s(zone, at))]
    while at < last:
        ahead = min(at + _STEP_S, last)
        if _offset_s(zone, ahead) != offsets[-1][1]:
            offsets.append(_transition(zone, at, ahead))
        at = ahead
    return offsets


def _transition(zone: ZoneInfo, before: int, after: int) -> tuple[int, int]:
    """The second in ``(before, after]`` at which the offset changes, and the offset from then on."""
    old, new = _offset_s(zone, before), _offset_s(zone, after)
    while after - before > 1:
        middle = (before + after) // 2
        if _offset_s(zone, middle) == old:
            before = middle
        else:
            after = middle
    return after, new


def _offset_s(zone: ZoneInfo, at_s: int) -> int:
    offset = datetime.fromtimestamp(at_s, UTC).astimezone(zone).utcoffset()
    if offset is None:
        raise ValueError(f"{zone.key} has no offset")
    return int(offset.total_seconds())
