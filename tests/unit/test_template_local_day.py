"""The days of a time zone, and its offsets as the claim script reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coupon_workers.templates.local_day import MARGIN, local_day_number, utc_offsets

ZONES = (
    "Asia/Shanghai",
    "America/New_York",
    "Europe/Berlin",
    "Africa/Casablanca",  # leaves daylight saving for a month each year
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Havana",
    "Asia/Kathmandu",
    "Pacific/Apia",  # skipped a whole day in 2011
    "Europe/Dublin",
)
instants = st.datetimes(datetime(2010, 1, 1), datetime(2040, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC))  # noqa: DTZ001


def day_by_offsets(offsets: list[tuple[int, int]], instant: datetime) -> int:
    """The day as ``lua/claim.lua`` finds it."""
    now_s, offset_s = int(instant.timestamp()), 0
    for from_s, offset in offsets:
        if from_s <= now_s:
            offset_s = offset
    return (now_s + offset_s) // 86_400


def test_both_half_past_ones_of_a_long_day_are_one_day() -> None:
    """2026-11-01 in New York: 01:30 comes in daylight time and again in standard time."""
    first = datetime.fromisoformat("2026-11-01T01:30:00-04:00")
    second = datetime.fromisoformat("2026-11-01T01:30:00-05:00")

    days = {local_day_number(first, "America/New_York"), local_day_number(second, "America/New_York")}

    assert {20_758} == days


def test_a_second_before_and_after_midnight_are_two_days() -> None:
    """The date is the zone's, not that of UTC."""
    late = datetime.fromisoformat("2026-11-01T23:59:59-05:00")
    early = datetime.fromisoformat("2026-11-02T00:00:01-05:00")

    assert 1 == local_day_number(early, "America/New_York") - local_day_number(late, "America/New_York")


def test_a_zone_without_changes_has_one_offset() -> None:
    """It begins two days before the window."""
    start = datetime(2026, 11, 11, tzinfo=UTC)

    offsets = utc_offsets("Asia/Shanghai", start, start + timedelta(days=3650))

    assert [(int((start - MARGIN).timestamp()), 8 * 3600)] == offsets


def test_a_transition_is_exact_to_the_second() -> None:
    """New York leaves daylight saving at 2026-11-01T06:00:00Z."""
    start = datetime(2026, 10, 31, tzinfo=UTC)

    offsets = utc_offsets("America/New_York", start, start + timedelta(days=3))

    transition_s = int(datetime(2026, 11, 1, 6, tzinfo=UTC).timestamp())
    assert [(int((start - MARGIN).timestamp()), -4 * 3600), (transition_s, -5 * 3600)] == offsets


@pytest.mark.parametrize("edge", ["2026-11-03T05:59:59+00:00", "2026-10-30T06:00:00+00:00"])
def test_transitions_within_two_days_of_a_window_are_listed(edge: str) -> None:
    """A late rejection, or a clock that differs, still finds its day."""
    instant = datetime.fromisoformat(edge)

    offsets = utc_offsets("America/New_York", instant, instant)

    assert 2 == len(offsets)


@settings(deadline=None)
@given(st.sampled_from(ZONES), instants, st.integers(0, 3653), st.data())
def test_the_offsets_give_the_day_that_the_zone_gives(
    timezone: str, start: datetime, length_days: int, data: st.DataObject
) -> None:
    """For every instant from two days before the window to two days after it."""
    end = start + timedelta(days=length_days)
    inside = st.timedeltas(timedelta(0), end - start + 2 * MARGIN)

    offsets = utc_offsets(timezone, start, end)

    for _ in range(20):
        instant = start - MARGIN + data.draw(inside)
        assert local_day_number(instant, timezone) == day_by_offsets(offsets, instant)
    for from_s, offset_s in offsets[1:]:
        at = datetime.fromtimestamp(from_s, UTC).astimezone(ZoneInfo(timezone))
        assert timedelta(seconds=offset_s) == at.utcoffset()


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(ZONES), instants)
def test_offsets_ascend_and_each_differs_from_the_one_before(timezone: str, start: datetime) -> None:
    """No pair says what the pair before it said."""
    offsets = utc_offsets(timezone, start, start + timedelta(days=1200))

    assert all(one[0] < other[0] and one[1] != other[1] for one, other in pairwise(offsets))
