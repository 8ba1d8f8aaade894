"""The checker bites on closed days: each is broken on purpose, by the books and by what was frozen."""

from __future__ import annotations

import pytest

from coupon_workers.checking.report import check_all
from coupon_workers.runtime.services import Services
from tests.support.closing import ClosingShop

DAY = "2026-11-11"

BREAKS = {
    "a unit more than the ledger has": (
        "UPDATE daily_close_row SET (redeemed_minor, expense_minor) = (redeemed_minor + 1, expense_minor + 1)"
    ),
    "a unit moved between two sums": (
        "UPDATE daily_close_row SET (redeemed_minor, returned_minor) = (redeemed_minor + 1, returned_minor + 1)"
    ),
    "another currency": "UPDATE daily_close_row SET currency = 'JPY'",
    "a row lost": "DELETE FROM daily_close_row",
    "a row of a template that did nothing": (
        "INSERT INTO daily_close_row SELECT business_date, revision, 1, 'CNY', '', 0, 0, 0, 5, 0, 0, 0, 0, 0, 5"
        " FROM daily_close_row"
    ),
    "a coupon more than was issued": "UPDATE daily_close_row SET issued_count = issued_count + 1",
    "a redemption too few": "UPDATE daily_close_row SET redeemed_count = redeemed_count - 1",
    "a return that was not": "UPDATE daily_close_row SET returned_count = returned_count + 1",
    "an expiry that was not": "UPDATE daily_close_row SET expired_count = expired_count + 1",
}


@pytest.fixture
def shop(services: Services) -> ClosingShop:
    """A day with two orders, one of them returned, that is closed; and the day after, which is not."""
    shop = ClosingShop(services).at("2026-11-11T12:00+08:00")
    template = shop.template()
    shop.buy("o1", template)
    shop.buy("o2", template)
    shop.refund("o2", "r1")
    shop.at("2026-11-12T12:00+08:00").buy("o3", template)
    shop.close(DAY)
    return shop


def test_a_closed_day_breaks_no_rule(shop: ClosingShop) -> None:
    """Also one that was opened again, whatever its books say now."""
    closed = check_all(shop.services, patience_s=0)
    shop.reopen(DAY)
    shop.at("2026-11-11T13:00+08:00").buy("o4", shop.template())
    reopened = check_all(shop.services, patience_s=0)

    assert ([], []) == (closed.breaches, reopened.breaches)


@pytest.mark.parametrize("name", BREAKS)
def test_a_close_that_is_not_the_books_is_seen(shop: ClosingShop, name: str) -> None:
    """What was frozen is compared to the last unit, and nothing else is reported."""
    shop.execute(BREAKS[name])

    assert {"closed_day"} == {breach.invariant for breach in check_all(shop.services, patience_s=0).breaches}


def test_a_booking_that_comes_late_is_seen(shop: ClosingShop) -> None:
    """The day is told, the template, and both sums."""
    shop.at("2026-11-11T23:59+08:00").buy("late", template := shop.template())

    breaches = check_all(shop.services, patience_s=0).breaches

    assert [f"day {DAY} template {template}"] * 2 == [breach.subject for breach in breaches]
    assert "2000 less 0, in all 2000 CNY, by the ledger" == breaches[0].expected
