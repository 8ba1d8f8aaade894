"""When the orders of the demo's yesterday were paid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from coupon_workers.demo.past_day import TIMEZONE, noon_yesterday
from coupon_workers.reconciliation.order_sql import BORDER_HOURS


@pytest.mark.parametrize("hour", range(24))
def test_it_is_yesterday_and_far_from_midnight(hour: int) -> None:
    """Whenever the demo is started: near midnight the comparison would wait for the next day's statement."""
    now = datetime(2026, 11, 30, hour, 30, tzinfo=UTC)

    there = noon_yesterday(now).astimezone(ZoneInfo(TIMEZONE))

    assert now.astimezone(ZoneInfo(TIMEZONE)).date() - timedelta(days=1) == there.date()
    assert BORDER_HOURS < there.hour < 24 - BORDER_HOURS


@pytest.mark.parametrize(("after_midnight", "days_ago"), [(timedelta(seconds=119), 2), (timedelta(seconds=120), 1)])
def test_just_after_midnight_it_is_the_day_before_whose_books_can_be_closed(
    after_midnight: timedelta, days_ago: int
) -> None:
    """A demo that is started then shows a closed day as well: the newest one's books open for another moment."""
    midnight = datetime(2026, 12, 1, tzinfo=ZoneInfo(TIMEZONE))

    there = noon_yesterday((midnight + after_midnight).astimezone(UTC)).astimezone(ZoneInfo(TIMEZONE))

    assert midnight.date() - timedelta(days=days_ago) == there.date()
