"""The daily close: each template's own day, frozen, equal to the ledger, and opened again only with a trace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime

import pytest

from coupon_workers.checking.report import check_all
from coupon_workers.finance.close_csv import close_csv
from coupon_workers.finance.close_reading import read_close
from coupon_workers.finance.daily_close import SCHEDULE, close_due_day
from coupon_workers.runtime.services import Services
from tests.support.closing import CLERK, ClosingShop, brief, by_template, cart
from tests.support.order_shop import refused

DAY, NEXT = "2026-11-11", "2026-11-12"
NOON = "2026-11-11T12:00+08:00"
LATER = "2026-11-20T12:00+08:00"


@pytest.fixture
def shop(services: Services) -> ClosingShop:
    """A shop that opens on a Wednesday noon in Shanghai."""
    return ClosingShop(services)


def test_a_day_has_counts_and_amounts_of_each_template(shop: ClosingShop) -> None:
    """Issued, redeemed, returned, expired, and what it cost: the ledger's sums, by template and in all."""
    twenty, tenth = shop.template(), shop.template(type="percent_off", amount_minor=None, percent_off_bp=1_000)
    shop.at(NOON).buy("o1", twenty)
    shop.buy("o2", twenty)
    shop.issue(twenty, valid_to=datetime.fromisoformat("2026-11-11T20:00+08:00"))
    shop.buy("o3", tenth)
    shop.at("2026-11-11T21:00+08:00").expire()
    shop.refund("o2", "r1")

    closed = shop.at(LATER).close(DAY)

    assert {
        twenty: ((3, 2, 1, 1), (6_000, 4_000, 2_000, 2_000, 2_000)),
        tenth: ((1, 1, 0, 0), (None, 1_500, 0, None, 1_500)),
    } == by_template(closed)
    assert [((4, 3, 1, 1), (6_000, 5_500, 2_000, 2_000, 3_500))] == [brief(total) for total in closed.totals]
    assert shop.expense() == closed.totals[0].expense_net
    assert ("closed", 1, CLERK) == (closed.status, closed.revision, closed.closed_by)


def test_a_late_refund_is_of_the_day_on_which_it_is_made(shop: ClosingShop) -> None:
    """A part that no coupon comes back for has an amount and no count; a day may cost less than nothing."""
    template = shop.template()
    shop.at(NOON).buy("o1", template)
    shop.buy("o2", template)
    first = shop.at("2026-11-12T09:00+08:00").close(DAY)
    shop.refund("o1", "r1")
    shop.refund("o2", "r2", [("2", 1)])

    second = shop.at(LATER).close(NEXT)

    assert {template: ((2, 2, 0, 0), (4_000, 4_000, 0, 0, 4_000))} == by_template(first)
    assert {template: ((0, 0, 1, 0), (0, 0, 2_667, 0, -2_667))} == by_template(second)
    assert by_template(first) == by_template(read_close(shop.services, date.fromisoformat(DAY)))
    assert check_all(shop.services, patience_s=0).holds


@pytest.mark.parametrize(
    ("zone", "day", "first", "last"),
    [
        ("Asia/Shanghai", "2026-11-11", "2026-11-11T00:00:00+08:00", "2026-11-11T23:59:59.999+08:00"),
        ("America/New_York", "2026-11-01", "2026-11-01T00:00:00-04:00", "2026-11-01T23:59:59.999-05:00"),
        ("America/New_York", "2026-03-08", "2026-03-08T00:00:00-05:00", "2026-03-08T23:59:59.999-04:00"),
        # At midnight clocks go on to one o'clock: the day has no 00:00.
        ("America/Santiago", "2026-09-06", "2026-09-06T01:00:00-03:00", "2026-09-06T23:59:59.999-03:00"),
        # At one o'clock clocks go back: the day has 00:00 twice, and begins with the first.
        ("America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00", "2026-11-01T23:59:59.999-05:00"),
        ("Pacific/Kiritimati", "2026-11-11", "2026-11-11T00:00:00+14:00", "2026-11-11T23:59:59.999+14:00"),
        ("Etc/GMT+12", "2026-11-11", "2026-11-11T00:00:00-12:00", "2026-11-11T23:59:59.999-12:00"),
    ],
)
def test_a_day_is_the_local_day_of_the_template(shop: ClosingShop, zone: str, day: str, first: str, last: str) -> None:
    """Its first and its last instants are in it, those just outside are not; also where clocks change."""
    template = shop.template(timezone=zone)
    bounds = [datetime.fromisoformat(first), datetime.fromisoformat(last)]
    for order, instant in enumerate((*bounds, *_just_outside(bounds))):
        shop.clock.now = instant
        shop.buy(f"o{order}", template)

    closed = shop.at("2026-12-31T00:00+00:00").close(day)

    assert {template: ((2, 2, 0, 0), (4_000, 4_000, 0, 0, 4_000))} == by_template(closed)
    [(booked,)] = shop.rows("SELECT sum(amount_minor) FROM ledger_entry WHERE business_date = :day", day=day)
    assert booked == closed.totals[0].redeemed_amount


def _just_outside(bounds: list[datetime]) -> list[datetime]:
    return [
        datetime.fromtimestamp(bounds[0].timestamp() - 0.5, bounds[0].tzinfo),
        datetime.fromtimestamp(bounds[1].timestamp() + 0.5, bounds[1].tzinfo),
    ]


def test_a_day_is_closed_when_it_is_over_in_every_zone(shop: ClosingShop) -> None:
    """Not while a template further west may still have entries; two minutes are left to what is under way."""
    east, west = shop.template(), shop.template(timezone="America/Los_Angeles")
    shop.at(NOON).buy("o1", east)
    shop.buy("o2", west)  # there it is the evening of the 10th

    early = refused(lambda: shop.at("2026-11-12T00:01:59-08:00").close(DAY))
    closed = shop.at("2026-11-12T00:02-08:00").close(DAY)

    assert ("DAY_NOT_OVER", {"closable_at": "2026-11-12T08:02:00Z"}) == early
    assert [east] == list(by_template(closed))
    assert [west] == list(by_template(shop.close("2026-11-10")))


def test_a_day_on_which_only_money_moved_has_it(shop: ClosingShop) -> None:
    """A piece that was returned, or a correction: no coupon moves with either."""
    returned, corrected = shop.template(), shop.template()
    shop.at(NOON).buy("o1", returned)
    coupon = shop.buy("o2", corrected)
    shop.at(f"{NEXT}T12:00+08:00").refund("o1", "r1", [("2", 1)])
    shop.adjust("a1", coupon, 70, "o2")

    closed = shop.at(LATER).close(NEXT)

    assert {
        returned: ((0, 0, 0, 0), (0, 0, 667, 0, -667)),
        corrected: ((0, 0, 0, 0), (0, 0, 0, 0, 70)),
    } == by_template(closed)


@pytest.mark.parametrize("status", ["offline", "archived"])
def test_a_day_waits_for_coupons_that_are_out_though_nobody_claims_any_more(shop: ClosingShop, status: str) -> None:
    """They are used and returned on days of their own zone still."""
    west = shop.template(timezone="America/Los_Angeles", status=status)
    shop.at(NOON).issue(west)
    shop.template()

    assert "DAY_NOT_OVER" == refused(lambda: shop.at("2026-11-12T00:01:59-08:00").close(DAY))[0]


def test_a_run_at_the_very_instant_from_which_a_day_can_be_closed_closes_it(shop: ClosingShop) -> None:
    """Nothing is added to it any more."""
    shop.at(NOON).buy("o1", shop.template())
    closable_at = datetime.fromisoformat("2026-11-12T00:02+08:00")

    assert date(2026, 11, 11) == close_due_day(shop.at(LATER).services, closable_at)


def test_money_of_two_currencies_is_not_added_up(shop: ClosingShop) -> None:
    """A total for each."""
    yen, yuan = shop.template(currency="JPY", amount_minor=500, threshold_minor=0), shop.template()
    shop.at(NOON).buy("o1", yen, lines=cart(2_000), currency="JPY")
    shop.buy("o2", yuan)

    closed = shop.at(LATER).close(DAY)

    assert [("CNY", 2_000), ("JPY", 500)] == [(total.currency, total.expense_net) for total in closed.totals]


def test_a_gift_is_no_second_issue(shop: ClosingShop) -> None:
    """The receiver's coupon begins its history with an issue, and its unit was taken before."""
    template = shop.template()
    shop.at(NOON).issue(template)
    gift = shop.issue(template)
    shop.execute("UPDATE coupon SET source = 'transfer' WHERE coupon_id = :gift", gift=gift)

    assert 1 == shop.at(LATER).close(DAY).rows[0].issued_count


def test_a_correction_is_in_the_expense(shop: ClosingShop) -> None:
    """What a person books, either way."""
    template = shop.template()
    coupon = shop.at(NOON).buy("o1", template)
    shop.adjust("f1", coupon, 70)
    shop.adjust("f2", coupon, -100)

    [row] = shop.at(LATER).close(DAY).rows

    assert (2_000, -30, 1_970, shop.expense()) == (
        row.redeemed_amount,
        row.adjusted_amount,
        row.expense_net,
        row.expense_net,
    )
    assert check_all(shop.services, patience_s=0).holds


def test_closing_again_answers_the_same(shop: ClosingShop) -> None:
    """By whomever, whenever, and many at once: a day is closed once."""
    template = shop.template()
    shop.at(NOON).buy("o1", template)
    shop.at(LATER)

    with ThreadPoolExecutor(4) as threads:
        closings = list(threads.map(lambda _: shop.close(DAY), range(8)))
    shop.clock.pass_by(days=1)

    assert [closings[0]] * 9 == [*closings, shop.close(DAY)]
    assert [(1,)] == shop.rows("SELECT count(*) FROM daily_close")


def test_a_reopened_day_is_closed_anew_and_nothing_is_forgotten(shop: ClosingShop) -> None:
    """What was closed stays as it was, with who opened it again, when and why."""
    template = shop.template(name="=1+1")
    shop.at(NOON).buy("o1", template)
    shop.at(LATER).close(DAY)
    shop.at(NOON).buy("o2", template)  # a booking that comes late

    broken = {breach.invariant for breach in check_all(shop.services, patience_s=0).breaches}
    opened = shop.at("2026-11-21T12:00Z").reopen(DAY, "a booking came late")
    twice = refused(lambda: shop.reopen(DAY))
    closed = shop.at("2026-11-22T12:00Z").close(DAY)

    assert {"closed_day"} == broken
    assert ("reopened", 1, 2_000) == (opened.status, opened.revision, opened.totals[0].expense_net)
    assert ("2026-11-21T12:00:00Z", CLERK, "a booking came late") == (
        opened.reopened_at,
        opened.reopened_by,
        opened.reason,
    )
    assert ("DAY_NOT_CLOSED", {}) == twice
    assert ("closed", 2, 4_000) == (closed.status, closed.revision, closed.totals[0].expense_net)
    assert [(1, "reopened"), (2, "closed")] == [(each.revision, each.status) for each in closed.revisions]
    assert f"{DAY},2,{template},'=1+1,CNY,2,4000,2,4000,0,0,0,0,0,4000" == close_csv(closed).splitlines()[1]
    assert [(1, 2_000), (2, 4_000)] == shop.rows(
        "SELECT revision, expense_minor FROM daily_close_row ORDER BY revision"
    )
    assert check_all(shop.services, patience_s=0).holds


def test_a_day_that_was_never_closed_is_not_there(shop: ClosingShop) -> None:
    """Neither to be read nor to be opened again; a day without any entry can be closed."""
    day = date.fromisoformat(DAY)

    assert ("DAILY_CLOSE_NOT_FOUND", {}) == refused(lambda: read_close(shop.services, day))
    assert ("DAILY_CLOSE_NOT_FOUND", {}) == refused(lambda: shop.reopen(DAY))
    assert ([], []) == (shop.at(LATER).close(DAY).rows, read_close(shop.services, day).totals)


def test_the_job_closes_each_day_once_it_is_over_everywhere(shop: ClosingShop) -> None:
    """And leaves to people what they have opened again."""
    shop.at(NOON).buy("o1", shop.template())
    runs = [datetime.fromisoformat(f"2026-11-{at}:00+00:00") for at in ("11T16:00", "11T17:00", "12T16:00", "12T17:00")]
    shop.at(LATER)

    closed = [close_due_day(shop.services, run) for run in runs]
    shop.reopen(NEXT)
    again = [close_due_day(shop.services, run) for run in runs]

    assert [date(2026, 11, 10), date(2026, 11, 11), None, date(2026, 11, 12)] == closed
    assert [None] * 4 == again
    assert SCHEDULE == read_close(shop.services, date(2026, 11, 11)).closed_by


def test_the_job_leaves_out_no_day_when_the_zones_draw_together(shop: ClosingShop) -> None:
    """The last template of the far west goes between two runs: two days are over at once, and the older comes first."""
    east = shop.template(timezone="Pacific/Kiritimati")
    shop.at("2026-11-11T12:00+14:00").buy("o1", east)
    west = shop.template(timezone="Pacific/Midway")
    runs = [datetime.fromisoformat(f"2026-11-12T{at}:00+00:00") for at in ("11:00", "12:00", "13:00", "14:00")]
    shop.at(LATER)

    closed = [close_due_day(shop.services, runs[0])]
    shop.execute("UPDATE coupon_template SET status = 'archived' WHERE template_id = :west", west=west)
    closed += [close_due_day(shop.services, run) for run in runs[1:]]

    assert [date(2026, 11, 10), date(2026, 11, 11), date(2026, 11, 12), None] == closed
