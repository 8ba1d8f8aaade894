"""Time zones as PostgreSQL understands their names: as we do, or they are not taken (DESIGN 12)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import text

from coupon_workers.runtime.services import Services
from coupon_workers.templates.field_type import known_timezones

SEASONS = [datetime(2026, month, 15, tzinfo=UTC) for month in (1, 7)]


def test_no_name_is_an_abbreviation_to_postgresql_and_a_place_to_us(services: Services) -> None:
    """``AT TIME ZONE 'CET'`` is winter time all year: days of summer would begin an hour late in the books alone."""
    names = {name.upper(): name for name in known_timezones()}  # abbreviations are read in any case
    with services.engine.connect() as connection:
        abbreviations = connection.execute(
            text("SELECT abbrev, utc_offset FROM pg_timezone_abbrevs WHERE abbrev = ANY(:names)"),
            {"names": list(names)},
        ).all()

    apart = [
        names[abbreviation]
        for abbreviation, offset in abbreviations
        if any(offset != at.astimezone(ZoneInfo(names[abbreviation])).utcoffset() for at in SEASONS)
    ]
    assert abbreviations
    assert [] == apart


def test_every_name_is_one_to_postgresql(services: Services) -> None:
    """What it does not know it would refuse amid a settling."""
    with services.engine.connect() as connection:
        known = set(connection.scalars(text("SELECT name FROM pg_timezone_names")))

    assert set() == known_timezones() - known
