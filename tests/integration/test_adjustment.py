"""Adjustments: what a person corrects is booked once, on an open day, with its trace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from coupon_workers.checking.report import check_all
from coupon_workers.finance.adjustment import Adjustment, book, book_adjustment
from coupon_workers.finance.ledger_reading import LedgerAnswer
from coupon_workers.runtime.services import Services
from tests.support.closing import CLERK, ClosingShop, cart
from tests.support.order_books import refused_without_a_trace
from tests.support.order_race import row_held, waiting
from tests.support.order_shop import refused
from tests.support.workshop import eventually

DAY = "2026-11-11"
NOON = f"{DAY}T12:00+08:00"


@pytest.fixture
def shop(services: Services) -> ClosingShop:
    """Noon in Shanghai."""
    return ClosingShop(services).at(NOON)


def _adjustment(shop: ClosingShop, coupon: int, amount: int = 70, reference: str = "t1") -> Adjustment:
    return Adjustment(
        reference=reference, user_id=shop.user, order_no="o1", coupon_id=coupon, amount_minor=amount, reason="a test"
    )


def _book(shop: ClosingShop, adjustment: Adjustment) -> LedgerAnswer:
    return book_adjustment(shop.services, adjustment, CLERK)


def test_more_expense_and_less_are_booked_either_way(shop: ClosingShop) -> None:
    """Against the account of adjustments, with who and why."""
    coupon = shop.buy("o1", shop.template())

    more = _book(shop, _adjustment(shop, coupon, 70, "t1"))
    less = _book(shop, _adjustment(shop, coupon, -100, "t2"))

    assert ("coupon_expense", "adjustment", 70, "CNY", DAY) == (
        more.debit_account, more.credit_account, more.amount, more.currency, more.date,
    )  # fmt: skip
    assert ("adjustment", "coupon_expense", 100) == (less.debit_account, less.credit_account, less.amount)
    assert (CLERK, "a test", "t2", str(coupon)) == (less.operator, less.reason, less.reference, less.coupon_no)
    assert 1_970 == shop.expense()
    assert check_all(shop.services, patience_s=0).holds


@pytest.mark.parametrize("currency", ["JPY", "KWD"])
def test_amounts_are_exact_in_any_currency(shop: ClosingShop, currency: str) -> None:
    """Up to what every JSON reader holds: a yen and a fils are a unit each."""
    template = shop.template(currency=currency, amount_minor=500, threshold_minor=0)
    coupon = shop.buy("o1", template, lines=cart(2_000), currency=currency)

    _book(shop, _adjustment(shop, coupon, 2**53 - 1, "t1"))
    booked = _book(shop, _adjustment(shop, coupon, -(2**53 - 1), "t2"))

    assert (2**53 - 1, currency) == (booked.amount, booked.currency)
    assert 500 == shop.expense()


def test_a_reference_books_once(shop: ClosingShop) -> None:
    """Also many at once, and by whomever: the answer is what was booked."""
    asked = _adjustment(shop, shop.buy("o1", shop.template()))

    with ThreadPoolExecutor(4) as threads:
        booked = list(threads.map(lambda _: _book(shop, asked), range(8)))
    shop.clock.pass_by(days=1)
    again = book_adjustment(shop.services, asked, "another clerk")

    assert [booked[0]] * 9 == [*booked, again]
    assert [(1,)] == shop.rows("SELECT count(*) FROM ledger_entry WHERE kind = 'adjustment'")


def test_a_reference_of_another_adjustment_is_refused(shop: ClosingShop) -> None:
    """Whatever differs: nothing is booked."""
    template = shop.template()
    coupon, other = shop.buy("o1", template), shop.buy("o2", template)
    asked = _adjustment(shop, coupon)
    _book(shop, asked)

    for changed in (
        replace(asked, amount_minor=71),
        replace(asked, amount_minor=-70),
        replace(asked, coupon_id=other),
        replace(asked, order_no="o2"),
        replace(asked, reason="another"),
        replace(asked, user_id="bob"),
    ):
        found = refused_without_a_trace(shop, partial(_book, shop, changed))

        assert ("INVALID", {"reference": "belongs to another adjustment"}) == found


def test_another_users_coupon_is_as_unknown_as_none(shop: ClosingShop) -> None:
    """The same refusal, without a trace."""
    coupon = shop.issue(shop.template(), "bob")

    for unknown in (coupon, coupon + 1):
        asked = _adjustment(shop, unknown)
        assert ("COUPON_NOT_FOUND", {}) == refused_without_a_trace(shop, partial(_book, shop, asked))


def test_a_closed_day_is_never_booked_on(shop: ClosingShop) -> None:
    """A template that came further west after the close: its adjustment is of the next open day, and check is quiet."""
    shop.buy("o1", shop.template())
    shop.at("2026-11-12T01:00+08:00").close(DAY)
    west = shop.template(timezone="America/Los_Angeles")  # there it is still the 11th
    coupon = shop.issue(west)

    booked = _book(shop, _adjustment(shop, coupon))

    assert "2026-11-12" == booked.date
    assert [] == [each for each in check_all(shop.services, patience_s=0).breaches if each.invariant == "ledger_use"]
    assert refused(lambda: shop.close("2026-11-12"))[0] == "DAY_NOT_OVER"


def test_whoever_adjusts_an_order_waits_for_whoever_has_it(shop: ClosingShop) -> None:
    """Who approves a finding of it looks at what is booked, and then books: nobody comes in between."""
    coupon = shop.buy("o1", shop.template())
    engine = shop.services.engine

    with ThreadPoolExecutor(1) as threads:
        with row_held(engine, "SELECT 1 FROM coupon_order WHERE order_no = 'o1'"):
            booked = threads.submit(_book, shop, _adjustment(shop, coupon))
            assert eventually(lambda: waiting(engine) == 1)

        assert 70 == booked.result().amount


def test_an_adjustment_that_another_has_just_booked_leaves_no_row_in_the_log(shop: ClosingShop) -> None:
    """Of an order that is not known here, at once: it is booked once, and so it is written down once."""
    coupon = shop.issue(shop.template())
    asked = _adjustment(shop, coupon)
    engine = shop.services.engine

    with ThreadPoolExecutor(1) as threads:
        with engine.begin() as connection:
            first = book(connection, shop.clock.now, asked, CLERK)
            second = threads.submit(_book, shop, asked)
            assert eventually(lambda: waiting(engine) == 1)

        assert str(first["entry_id"]) == second.result().entry_id

    assert [] == shop.rows("SELECT 1 FROM audit_log")


def test_a_close_waits_for_an_adjustment_under_way(shop: ClosingShop) -> None:
    """Once a day is held open nobody closes it before the adjustment has committed: it is in the close."""
    template = shop.template()
    coupon = shop.buy("o1", template)
    asked = _adjustment(shop, coupon)
    booking = ClosingShop(shop.services).at(NOON)
    with booking.services.engine.connect() as connection, connection.begin() as under_way, ThreadPoolExecutor(1) as run:
        book(connection, booking.clock.now, asked, CLERK)
        closing = run.submit(ClosingShop(shop.services).at("2026-11-20T12:00+08:00").close, DAY)
        _until_somebody_waits(shop)
        under_way.commit()

        assert 70 == closing.result().rows[0].adjusted_amount


def _until_somebody_waits(shop: ClosingShop) -> None:
    ends = datetime.now().astimezone() + timedelta(seconds=10)
    while not shop.rows("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
        assert datetime.now().astimezone() < ends


BREAKS = {
    "accounts": "UPDATE ledger_entry SET credit_account = 'order_discount' WHERE kind = 'adjustment'",
    "another currency": "UPDATE ledger_entry SET currency = 'JPY' WHERE kind = 'adjustment'",
    "another template": "UPDATE ledger_entry SET template_id = 1 WHERE kind = 'adjustment'",
    "nobody's coupon": "UPDATE ledger_entry SET coupon_id = 1 WHERE kind = 'adjustment'",
    "another's coupon": "UPDATE ledger_entry SET user_id = 'bob' WHERE kind = 'adjustment'",
    "a day before it was booked": (
        "UPDATE ledger_entry SET business_date = business_date - 1 WHERE kind = 'adjustment'"
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_checker_bites_on_adjustments(shop: ClosingShop, name: str) -> None:
    """Each is broken on purpose, and nothing else is reported."""
    _book(shop, _adjustment(shop, shop.buy("o1", shop.template())))
    shop.execute(BREAKS[name])

    assert {"ledger_use"} == {breach.invariant for breach in check_all(shop.services, patience_s=0).breaches}
