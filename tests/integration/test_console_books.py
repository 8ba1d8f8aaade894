"""The books in the console: days that were closed, one of them, closing and opening again; and the ledger."""

from __future__ import annotations

import re
from datetime import date

import pytest
from sqlalchemy import text

from coupon_workers.finance.close_list import read_closes
from coupon_workers.finance.close_reading import read_close
from tests.support.console_money_pages import DAY, closed, ledger_page
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop
from tests.support.order_http import OrderCentre

NEXT = "2026-11-12"


def test_days_are_listed_as_they_were_last_closed(shop: Shop) -> None:
    """The latest first, page by page; what each cost is the sum of its totals."""
    closed(shop)

    both = read_closes(shop.services, limit=10)
    [older] = read_closes(shop.services, limit=10, before=date.fromisoformat(NEXT))

    assert [(NEXT, 1), (DAY, 2)] == [(day.date, day.revision) for day in both]
    [total] = read_close(shop.services, date.fromisoformat(DAY)).totals
    [cost] = older.costs
    assert (total.issued_count, total.redeemed_count, total.expense_net) == (
        cost.issued_count,
        cost.redeemed_count,
        cost.expense_net,
    )
    assert [] == both[0].costs


def test_the_list_over_http_has_pages(shop: Shop) -> None:
    """Each day once."""
    closed(shop)
    ask = shop.desk.admin.ask

    first = ask("GET", "/v1/daily-closes?limit=1").ok()
    second = ask("GET", f"/v1/daily-closes?limit=1&cursor={first['next_cursor']}").ok()

    assert [NEXT, DAY] == [page["items"][0]["date"] for page in (first, second)]
    assert None is second["next_cursor"]
    ask("GET", "/v1/daily-closes?cursor=bad").problem(422, "VALIDATION_FAILED")


def test_a_day_shows_its_money_and_every_closing(shop: Shop, zoe: Visitor) -> None:
    """Totals are those of the core; the file is the API's own."""
    closed(shop)
    [total] = read_close(shop.services, date.fromisoformat(DAY)).totals

    page, file = zoe.page(f"/daily-closes/{DAY}"), zoe.get(f"/daily-closes/{DAY}.csv")

    assert f"CN¥{total.expense_net // 100}.00" in page
    assert "a refund was late" in page and "Every closing" in page
    assert shop.desk.admin.ask("GET", f"/v1/daily-closes/{DAY}.csv").body == file.data
    assert f"/console/daily-closes/{DAY}" in zoe.page("/daily-closes")


def test_a_day_is_opened_with_a_reason_and_closed_anew(shop: Shop, zoe: Visitor) -> None:
    """Each in the log; without a reason nothing is done."""
    closed(shop)

    without = zoe.post(f"/daily-closes/{DAY}/reopen", reason="")
    zoe.done(f"/daily-closes/{DAY}/reopen", reason="one more")
    opened = zoe.page(f"/daily-closes/{DAY}")
    zoe.done("/daily-closes", date=DAY)

    assert 422 == without.status_code
    assert "It was opened again:" in opened and "“one more”" in opened
    assert 3 == read_close(shop.services, date.fromisoformat(DAY)).revision
    with shop.services.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT action FROM audit_log WHERE operator = :key_id ORDER BY audit_id"),
            {"key_id": zoe.key.record.key_id},
        )
        assert ["day.reopen", "day.close"] == [row.action for row in rows]


@pytest.mark.parametrize(("day", "told"), [("2999-01-01", "Somewhere the day goes on."), ("soon", "Write a day")])
def test_a_day_that_cannot_be_closed_is_told_so(zoe: Visitor, day: str, told: str) -> None:
    """At the field."""
    answer = zoe.post("/daily-closes", date=day)

    assert 422 == answer.status_code and told in answer.text
    assert "No day was closed yet." in answer.text


def test_the_ledger_is_filtered_by_day_and_template(shop: Shop, zoe: Visitor) -> None:
    """A correction shows who made it, and why."""
    ledger_page(shop)
    entries = shop.desk.admin.ask("GET", "/v1/ledger").ok()["items"]
    template_id = next(entry["template_id"] for entry in entries if entry["kind"] == "adjustment")

    page = zoe.page("/ledger")

    assert len(entries) == _rows(page)
    assert "“a test”" in page and "coupon expense" in page
    of_day = [entry for entry in entries if entry["date"] == DAY]
    assert len(of_day) == _rows(zoe.page(f"/ledger?date={DAY}"))
    of_both = [entry for entry in of_day if entry["template_id"] == template_id]
    assert len(of_both) == _rows(zoe.page(f"/ledger?date={DAY}&template_id={template_id}"))
    assert "Nothing is booked so." in zoe.page("/ledger?date=2020-01-01")
    assert 422 == zoe.get("/ledger?date=soon").status_code


def test_the_ledger_is_filtered_by_user_and_order(shop: Shop, zoe: Visitor) -> None:
    """By time, over all days and templates; an order's number alone is not enough. Its rows lead on."""
    centre, other = OrderCentre(shop), OrderCentre(shop, "ben")
    coupon_no = _sold(centre, "o-1")
    _sold(centre, "o-2")
    _sold(other, "o-1")
    centre.refund("o-1", "back-1").ok()

    of_order, of_user = zoe.page("/ledger?user_id=ann&order_no=o-1"), zoe.page("/ledger?user_id=ann")

    assert (2, 3) == (_rows(of_order), _rows(of_user))
    assert ["o-1", "o-2", "o-1"] == re.findall(r"<code>(o-\d)</code>", of_user)
    assert 2 == of_order.count(f'href="/console/coupons/{coupon_no}"')
    assert 3 == of_user.count('href="/console/users?q=ann"')
    assert "Nothing is booked so." in zoe.page("/ledger?user_id=ann&order_no=o-3")
    assert "say whose order it is" in zoe.get("/ledger?order_no=o-1").text
    assert "leave day and template empty" in zoe.get(f"/ledger?user_id=ann&date={DAY}").text


def _sold(centre: OrderCentre, order_no: str) -> str:
    coupon_no = centre.coupon(order_no)
    centre.lock(order_no, [coupon_no]).ok()
    centre.redeem(order_no, f"pay-{order_no}").ok()
    return coupon_no


def _rows(page: str) -> int:
    return len(re.findall(r'<th scope="row">', page))
