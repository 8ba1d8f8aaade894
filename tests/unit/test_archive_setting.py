"""When coupons are archived: never, or long after everybody else is done with them."""

from __future__ import annotations

import pytest

from coupon_workers.errors import SettingsError
from coupon_workers.runtime.settings import read_settings


@pytest.mark.parametrize("days", ["0", "30", "400", "36500"])
def test_never_or_thirty_days_and_more(monkeypatch: pytest.MonkeyPatch, days: str) -> None:
    """A month at least: until then a gate may be warm, and an event be told."""
    monkeypatch.setenv("COUPON_ARCHIVE_AFTER_DAYS", days)

    assert int(days) == read_settings().archive_after_days


@pytest.mark.parametrize("days", ["1", "29", "-1", "36501", "year"])
def test_fewer_days_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, days: str) -> None:
    """Nothing starts on it."""
    monkeypatch.setenv("COUPON_ARCHIVE_AFTER_DAYS", days)

    with pytest.raises(SettingsError, match="COUPON_ARCHIVE_AFTER_DAYS"):
        read_settings()
