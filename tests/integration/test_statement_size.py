"""A large day: PostgreSQL holds its statement and compares it, by indexes; the process does not."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from coupon_workers.reconciliation.difference import MOST
from coupon_workers.reconciliation.order_sql import DAY, REDEEMED, UNREDEEMED
from coupon_workers.runtime.services import Services
from tests.support.closing import ClosingShop
from tests.support.statement import give
from tests.support.statement_heap import HISTORY, STATEMENT, explained, heap, in_child, lines

ROWS = 200_000
USERS = 50_000
DATE = "2026-11-11"
MOST_MIB = 64


@pytest.fixture
def shop(services: Services) -> ClosingShop:
    """The morning after."""
    return ClosingShop(services).at("2026-11-12T09:00+08:00")


def test_memory_does_not_grow_with_the_statement(shop: ClosingShop, tmp_path: Path) -> None:
    """Taking it, and comparing it with as many orders; a store in which nothing agrees is cut off at a limit."""
    file = tmp_path / "day.csv"
    with file.open("w") as content:
        content.writelines(lines(ROWS, USERS))
    heap(shop, DATE, ROWS, USERS)
    shop.execute("ANALYZE")

    taken = in_child(shop.services.settings, "take", str(file), DATE)
    agreed = in_child(shop.services.settings, "compare", DATE)
    shop.execute("UPDATE order_statement_row SET discount_minor = 1")
    broken = in_child(shop.services.settings, "compare", DATE)

    assert (ROWS, 0, MOST + 1) == (taken["count"], agreed["count"], broken["count"])
    assert MOST_MIB > max(each["growth_mib"] for each in (taken, agreed, broken))


@pytest.mark.parametrize("analyzed", [True, False], ids=["fresh statistics", "no statistics"])
def test_a_day_is_compared_by_indexes(shop: ClosingShop, analyzed: bool) -> None:
    """However many orders and statements there are of other days: no table is read from end to end."""
    for day in ("2026-11-09", "2026-11-10", DATE):
        give(shop.services, day)
        heap(shop, day, 10_000, 5_000, name=f"{day}-")
    for day in ("2026-11-09", "2026-11-10", DATE):
        shop.execute(STATEMENT + " WHERE order_no LIKE CAST(:day AS text) || '%'", day=day)
    shop.execute(HISTORY, day=DATE)
    if analyzed:
        shop.execute("ANALYZE ledger_entry, coupon_order, order_statement, order_statement_row, coupon_template")
    named = {"day": DATE, "as_of": shop.clock.now, "most": MOST + 1}

    plans = {name: explained(shop, each, named) for name, each in (("d", DAY), ("r", REDEEMED), ("u", UNREDEEMED))}

    for plan in plans.values():
        assert not re.search(r"Seq Scan on (ledger|coupon_order|coupon_refund|order_statement)", plan), plan
    for name in ("d", "r"):
        assert re.search(r"ix_ledger_entry_day.*\n.*Index Cond: \(.*business_date", plans[name]), plans[name]
    assert re.search(r"pk_order_statement_row.*\n.*Index Cond: \(.*order_no", plans["r"]), plans["r"]
    assert re.search(r"coupon_order_p\d_pkey.*\n.*Index Cond", plans["r"]), plans["r"]
    assert re.search(r"order_statement_row.*\n.*Index Cond: \(\(?business_date", plans["u"]), plans["u"]


def test_a_revision_is_read_and_not_those_before(shop: ClosingShop) -> None:
    """Ten revisions of a day cost as much as one."""
    for number in range(10):
        give(shop.services, DATE, *[f"o{n},ann,paid,{number},0,CNY" for n in range(500)])
    shop.execute("ANALYZE order_statement, order_statement_row")

    plan = explained(shop, UNREDEEMED, {"day": DATE, "as_of": datetime.fromisoformat("2026-12-01T00:00Z"), "most": 10})

    assert re.search(r"Index Cond: \(\(?.*business_date = .*\) AND \(.*revision = ", plan), plan
