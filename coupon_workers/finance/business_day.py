"""When a business day begins and ends: it is the local day of each template's own time zone (DESIGN 10).

PostgreSQL answers, as it is PostgreSQL that gives each booking its day: one copy of the time zones decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import Connection, text

from coupon_workers.errors import InvalidInput

SETTLING = timedelta(minutes=2)
"""A change takes its instant before it commits; PostgreSQL ends any transaction well within this. A day is over when
nothing that belongs to it can be under way."""

FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2999, 12, 31)

# Whose coupons are out, or may be claimed from now on. Where clocks go back at midnight the first 00:00 is an hour
# before PostgreSQL's: the span begins early rather than late, and each row's own local day decides.
_SPAN = text("""
    SELECT min(CAST(CAST(:day AS date) AS timestamp) AT TIME ZONE timezone) - INTERVAL '3 hours' AS begins,
           max(CAST(CAST(:day AS date) + 1 AS timestamp) AT TIME ZONE timezone) AS ends
      FROM (SELECT DISTINCT timezone FROM coupon_template
             WHERE issued_quantity > 0 OR status IN ('scheduled', 'active', 'paused')) AS zones
""")


@dataclass(frozen=True, slots=True)
class DaySpan:
    """All instants of a business day, from its begin in the first zone until (excluded) its end in the last."""

    begins: datetime
    ends: datetime

    @property
    def closable_at(self) -> datetime:
        """From then on nothing is added to the day."""
        return self.ends + SETTLING


def day_span(connection: Connection, day: date) -> DaySpan:
    """The span of ``day`` over the zones of all templates that may have entries; UTC when there is none."""
    begins, ends = connection.execute(_SPAN, {"day": day}).one()
    midnight = datetime.combine(day, time(), UTC)
    return DaySpan(begins or midnight, ends or midnight + timedelta(days=1))


def last_day_over(connection: Connection, now: datetime) -> date:
    """The latest business day that is over at ``now`` in every zone."""
    day = now.date() + timedelta(days=1)
    while day_span(connection, day).closable_at > now:
        day -= timedelta(days=1)
    return day


def read_day(text_: str) -> date:
    """The day that ``YYYY-MM-DD`` spells, of the years 2000 to 2999.

    Raises ``InvalidInput`` naming the field ``date``.
    """
    try:
        day = date.fromisoformat(text_)
    except ValueError:
        day = date.min
    if day.isoformat() != text_ or not FIRST_DAY <= day <= LAST_DAY:
        raise InvalidInput([("date", "must be a day of the years 2000 to 2999, as 2026-11-11")])
    return day
