"""The checker bites on time zones of which PostgreSQL and this machine know different things."""

from __future__ import annotations

import shutil
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coupon_workers.checking.report import check_all
from coupon_workers.checking.time_zone import time_zone
from coupon_workers.runtime.services import Services
from tests.support.lottery import open_lottery, thanks
from tests.support.sale import open_sale

YEAR = {"claim_start": datetime(2026, 1, 10, tzinfo=UTC), "claim_end": datetime(2027, 1, 10, tzinfo=UTC)}


@pytest.fixture
def zones(tmp_path: Path) -> Iterator[Path]:
    """Time zone data of our own, in which a test puts one zone's rules under another's name."""
    yield tmp_path
    zoneinfo.reset_tzpath()
    zoneinfo.ZoneInfo.clear_cache()


def know(zones: Path, name: str, rules_of: str) -> None:
    """Have this process, and not PostgreSQL, take the rules of one zone for those of another."""
    found = next(path for path in (Path(base) / rules_of for base in zoneinfo.TZPATH) if path.exists())
    (zones / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(found, zones / name)
    zoneinfo.reset_tzpath([zones])
    zoneinfo.ZoneInfo.clear_cache()


def test_a_zone_that_both_know_alike_is_sound(services: Services) -> None:
    """With summer time, without, and half an hour of it."""
    for number, zone in enumerate(("Europe/Berlin", "Asia/Shanghai", "Australia/Lord_Howe"), 1):
        open_sale(services, template_id=7000 + number, timezone=zone, **YEAR)

    assert [] == time_zone(services)


@pytest.mark.parametrize(
    ("rules_of", "first", "ours", "theirs"),
    [
        ("Europe/London", "2026-01-08T00:00:00Z", "0 s", "3600 s"),  # another offset all year
        ("Africa/Lagos", "2026-03-29T01:00:00Z", "3600 s", "7200 s"),  # no summer time: found within a week of it
    ],
)
def test_a_zone_of_which_they_know_different_rules_is_told(
    services: Services, zones: Path, rules_of: str, first: str, ours: str, theirs: str
) -> None:
    """With the first moment at which the two are apart, or a week later at the latest."""
    open_sale(services, timezone="Europe/Berlin", **YEAR)
    know(zones, "Europe/Berlin", rules_of)

    [breach] = time_zone(services)

    zone, _, at = breach.subject.partition(" at ")
    assert ("time_zone", "Europe/Berlin", ours, theirs) == (breach.invariant, zone, breach.expected, breach.actual)
    late = datetime.fromisoformat(at) - datetime.fromisoformat(first)
    assert 0 <= late.total_seconds() <= 7 * 24 * 3600


def test_a_lotterys_zone_counts_and_the_check_names_nothing_else(services: Services, zones: Path) -> None:
    """Each zone once, whoever uses it."""
    for _ in range(2):
        open_lottery(services, [thanks(1_000_000, stock=9)], timezone="Asia/Tokyo")
    know(zones, "Asia/Tokyo", "Asia/Shanghai")

    breaches = check_all(services, patience_s=0).breaches

    assert ["time_zone"] == [breach.invariant for breach in breaches]
