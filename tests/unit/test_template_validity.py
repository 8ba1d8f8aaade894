"""How long coupons hold: fixed and relative windows, ends of local days, changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.templates.validity import day_before_midnight, end_of_day, valid_window

ZONES = (
    "Asia/Shanghai",
    "America/New_York",
    "Europe/Berlin",
    "Africa/Cairo",  # its clock skips midnight
    "America/Havana",  # its clock repeats midnight
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "Asia/Kathmandu",
    "America/Nuuk",
    "Africa/Casablanca",
    "Pacific/Kiritimati",
)
zones = st.sampled_from(ZONES)
instants = st.datetimes(datetime(2015, 1, 1), datetime(2045, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC))  # noqa: DTZ001


def utc(text: str) -> datetime:
    """The instant of an RFC 3339 text."""
    return datetime.fromisoformat(text).astimezone(UTC)


def relative(days: int, start_after_days: int = 0, *, until_end_of_day: bool = False) -> dict[str, Any]:
    """A relative validity as it is stored."""
    flag = {"until_end_of_day": True} if until_end_of_day else {}
    return {"mode": "relative", "days": days, "start_after_days": start_after_days} | flag


def test_the_end_of_a_day_in_shanghai_is_sixteen_hours_utc() -> None:
    """Valid until the end of 2026-11-11 there: the first instant without is 16:00:00Z."""
    validity = {"mode": "fixed", "from": "2026-11-01T00:00:00Z", "to": "2026-11-10T17:00:00Z", "until_end_of_day": True}

    _, valid_to = valid_window(validity, "Asia/Shanghai", utc("2026-11-01T00:00:00Z"))

    assert utc("2026-11-11T16:00:00Z") == valid_to
    assert utc("2026-11-11T15:59:59.999Z") < valid_to


def test_a_fixed_window_is_the_same_whenever_a_coupon_is_issued() -> None:
    """From and to are taken as they are."""
    validity = {"mode": "fixed", "from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z"}

    windows = {
        valid_window(validity, "Asia/Shanghai", utc(at)) for at in ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z")
    }

    assert {(utc("2026-11-01T00:00:00Z"), utc("2026-12-01T00:00:00Z"))} == windows


@pytest.mark.parametrize(
    ("validity", "issued_at", "expected"),
    [
        (relative(7), "2026-11-11T10:00:00+08:00", ("2026-11-11T10:00:00+08:00", "2026-11-18T10:00:00+08:00")),
        (relative(7, 1), "2026-11-11T10:00:00+08:00", ("2026-11-12T10:00:00+08:00", "2026-11-19T10:00:00+08:00")),
        (
            relative(7, until_end_of_day=True),
            "2026-11-11T10:00:00+08:00",
            ("2026-11-11T10:00:00+08:00", "2026-11-19T00:00:00+08:00"),
        ),
    ],
)
def test_a_relative_window_counts_days_from_the_issue(
    validity: dict[str, Any], issued_at: str, expected: tuple[str, str]
) -> None:
    """Days later at the same time of day, or to the end of that day."""
    window = valid_window(validity, "Asia/Shanghai", utc(issued_at))

    assert (utc(expected[0]), utc(expected[1])) == window


@pytest.mark.parametrize("timezone", ZONES)
def test_coupons_of_one_day_end_together_those_of_its_first_instant_too(timezone: str) -> None:
    """A sale opens at midnight: its first claim is worth as long as the next one."""
    midnight = end_of_day(utc("2026-11-10T12:00:00Z"), timezone)
    issued = (
        midnight,
        midnight + timedelta(milliseconds=1),
        end_of_day(midnight, timezone) - timedelta(milliseconds=1),
    )

    ends = {valid_window(relative(7, until_end_of_day=True), timezone, at)[1] for at in issued}

    assert {end_of_day(midnight + timedelta(days=7, hours=2), timezone)} == ends


def test_a_day_later_is_the_same_time_of_day_across_a_change_of_the_clock() -> None:
    """On 2026-03-29 Berlin's day has 23 hours."""
    _, valid_to = valid_window(relative(1), "Europe/Berlin", utc("2026-03-28T12:00:00+01:00"))

    assert utc("2026-03-29T12:00:00+02:00") == valid_to


def test_a_time_of_day_that_is_skipped_ends_as_much_later() -> None:
    """02:30 does not exist in Berlin on 2026-03-29."""
    _, valid_to = valid_window(relative(1), "Europe/Berlin", utc("2026-03-28T02:30:00+01:00"))

    assert utc("2026-03-29T03:30:00+02:00") == valid_to


def test_a_naive_issue_is_refused() -> None:
    """It names no instant."""
    with pytest.raises(ValueError, match="naive"):
        valid_window(relative(1), "Asia/Shanghai", datetime(2026, 1, 1))  # noqa: DTZ001


@given(zones, instants, st.integers(1, 3650), st.integers(0, 3650), st.booleans())
def test_relative_windows_ascend_and_begin_at_the_issue_at_the_earliest(
    timezone: str, issued_at: datetime, days: int, start_after_days: int, to_end_of_day: bool
) -> None:
    """Whatever the clock does, a coupon holds for about its days, and never less for being prolonged."""
    valid_from, valid_to = valid_window(relative(days, start_after_days), timezone, issued_at)
    _, prolonged_to = valid_window(
        relative(days, start_after_days, until_end_of_day=to_end_of_day), timezone, issued_at
    )

    assert issued_at <= valid_from + timedelta(hours=1) < valid_to + timedelta(hours=1)
    assert abs(valid_to - valid_from - timedelta(days=days)) <= timedelta(hours=2)
    assert valid_to <= prolonged_to <= valid_to + timedelta(hours=26)
    assert (UTC, UTC) == (valid_from.tzinfo, prolonged_to.tzinfo)


@given(zones, instants)
def test_the_end_of_a_day_is_the_first_instant_of_the_next_date(timezone: str, instant: datetime) -> None:
    """Also where midnight is skipped or comes twice."""
    zone = ZoneInfo(timezone)

    end = end_of_day(instant, timezone)

    day = instant.astimezone(zone).date()
    assert day + timedelta(days=1) == end.astimezone(zone).date()
    assert day == (end - timedelta(microseconds=1)).astimezone(zone).date()


@given(instants, zones)
def test_the_end_of_a_day_is_told_as_that_days(instant: datetime, timezone: str) -> None:
    """Also where the clock skips midnight, or shows it twice; a moment before or after it is of no day the end."""
    end, day = end_of_day(instant, timezone), instant.astimezone(ZoneInfo(timezone)).date()

    assert day == day_before_midnight(end, timezone)
    assert day_before_midnight(end + timedelta(seconds=1), timezone) is None
    assert day_before_midnight(end - timedelta(seconds=1), timezone) is None
