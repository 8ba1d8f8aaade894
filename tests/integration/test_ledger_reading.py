"""The ledger read out in pages: each booking once, the latest day first."""

from __future__ import annotations

from datetime import date

import pytest
from sqlalchemy import text

from coupon_workers.finance.ledger_reading import LedgerAnswer, Position, _wanted, read_ledger
from coupon_workers.finance.user_ledger import read_user_ledger, wanted_of_user
from coupon_workers.runtime.services import Services
from tests.support.closing import ClosingShop

MORE = """
    INSERT INTO ledger_entry (user_id, order_no, coupon_id, template_id, kind, reference, debit_account, credit_account,
                              amount_minor, currency, business_date, at)
    SELECT 'u', 'o' || n, n, n % 5, 'redeem', 'p', 'coupon_expense', 'order_discount', 1, 'CNY',
           CAST('2026-11-01' AS date) + n % 20, now()
      FROM generate_series(1, 20000) AS n
"""

DAYS = (date(2026, 11, 11), date(2026, 11, 12))


@pytest.fixture
def shop(services: Services) -> ClosingShop:
    """Two templates, three orders a day on each, two days; an order of the first day is returned on the second."""
    shop = ClosingShop(services)
    templates = [shop.template(template_id=number) for number in (1, 2)]
    for day in DAYS:
        shop.at(f"{day}T12:00+08:00")
        for template in templates:
            for number in range(3):
                shop.buy(f"{day}-{template}-{number}", template)
    shop.refund("2026-11-11-1-0", "r1")
    return shop


def _paged(services: Services, day: date | None = None, template_id: int | None = None) -> list[LedgerAnswer]:
    read: list[LedgerAnswer] = []
    before: Position | None = None
    while page := read_ledger(services, limit=2, day=day, template_id=template_id, before=before):
        read += page
        before = page[-1].position
    return read


@pytest.mark.parametrize(
    ("day", "template_id", "count"),
    [
        (None, None, 13),
        (DAYS[0], None, 6),
        (DAYS[1], None, 7),
        (None, 1, 7),
        (DAYS[1], 1, 4),
        (DAYS[1], 2, 3),
        (None, 3, 0),
    ],
)
def test_pages_have_each_booking_once(shop: ClosingShop, day: date | None, template_id: int | None, count: int) -> None:
    """In one order, whatever is asked for."""
    read = _paged(shop.services, day, template_id)

    assert sorted((entry.position for entry in read), reverse=True) == [entry.position for entry in read]
    assert (count, count) == (len(read), len({entry.entry_id for entry in read}))
    assert all(day is None or entry.date == day.isoformat() for entry in read)
    assert all(template_id is None or entry.template_id == str(template_id) for entry in read)


def test_a_booking_tells_its_accounts(shop: ClosingShop) -> None:
    """A refund is booked the other way round, on its own day."""
    [refund] = [entry for entry in _paged(shop.services, DAYS[1], 1) if entry.kind == "refund"]

    assert ("order_discount", "coupon_expense", 2_000, "CNY") == (
        refund.debit_account, refund.credit_account, refund.amount, refund.currency,
    )  # fmt: skip
    assert ("2026-11-11-1-0", "r1", "2026-11-12T04:00:00Z") == (refund.order_no, refund.reference, refund.at)


@pytest.mark.parametrize(
    ("day", "template_id", "index"),
    [
        (None, None, "ix_ledger_entry_day"),
        (DAYS[0], None, "ix_ledger_entry_day"),
        (None, 1, "ix_ledger_entry_template"),
        (DAYS[0], 1, "ix_ledger_entry_"),
    ],
)
def test_a_page_is_read_in_the_order_of_an_index(
    shop: ClosingShop, day: date | None, template_id: int | None, index: str
) -> None:
    """Nothing is sorted, however long the ledger is."""
    shop.execute(MORE)
    shop.execute("ANALYZE ledger_entry")
    wanted = _wanted(day, template_id, (DAYS[1], 2, 5)).limit(50)
    with shop.services.engine.connect() as connection:
        sql = str(wanted.compile(connection, compile_kwargs={"literal_binds": True}))
        plan = "\n".join(connection.scalars(text(f"EXPLAIN {sql}")))

    assert f"Index Scan Backward using {index}" in plan
    assert "Sort" not in plan


def test_a_users_bookings_are_read_by_the_key_of_effects(shop: ClosingShop) -> None:
    """The newest first, in pages; those of an order or of a coupon alone. Nobody walks through the whole ledger."""
    entries = read_user_ledger(shop.services, shop.user, limit=50)
    [redeem] = read_user_ledger(shop.services, shop.user, limit=50, order_no="2026-11-12-2-0")
    [returned, _] = of_order = read_user_ledger(shop.services, shop.user, limit=50, order_no="2026-11-11-1-0")
    shop.execute(MORE)
    shop.execute("ANALYZE ledger_entry")
    page = wanted_of_user(["order_no", "coupon_id", "before"])
    named = {"user_id": "u", "order_no": "o1", "coupon_id": 1, "before": 9_999, "limit": 50}
    with shop.services.engine.connect() as connection:
        plan = "\n".join(connection.scalars(text(f"EXPLAIN {page}"), named))

    numbers = [int(entry.entry_id) for entry in entries]
    assert sorted(numbers, reverse=True) == numbers
    assert (13, "redeem", "refund") == (len(entries), redeem.kind, returned.kind)
    assert of_order == read_user_ledger(shop.services, shop.user, limit=50, coupon_id=int(returned.coupon_no))
    assert entries[3:5] == read_user_ledger(shop.services, shop.user, limit=2, before=numbers[2])
    assert [] == read_user_ledger(shop.services, "nobody", limit=50)
    assert "uq_ledger_entry_effect" in plan and "ledger_entry_pkey" not in plan
