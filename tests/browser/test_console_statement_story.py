"""A statement of orders in a browser: refused row by row, given, warned of, replaced."""

from __future__ import annotations

import re

from playwright.sync_api import FilePayload, expect

from coupon_workers.access.console_session import end_session
from coupon_workers.reconciliation.statement_reading import list_statements
from tests.browser.conftest import NewReader
from tests.support.console_money_pages import DAY
from tests.support.http_shop import Shop
from tests.support.statement import said
from web.console.guard import COOKIE

GOOD = ("o1,ann,paid,13000,2000,CNY", "o2,bob,closed,0,0,JPY")


def file(*rows: str) -> FilePayload:
    """A file of rows."""
    return {"name": "orders.csv", "mimeType": "text/csv", "buffer": said(*rows)}


def test_a_statement_is_refused_given_and_replaced(shop: Shop, new_reader: NewReader) -> None:
    """What is wrong has its line; over one that is there only with a tick; from the day to its findings."""
    reader = new_reader("admin", "orders")
    page = reader.open("/order-statements")
    page.get_by_label("Business day").fill(DAY)
    page.get_by_label("File of orders").set_input_files(file("o1,ann,eaten,1,0,CNY"))
    reader.press("Give it")

    expect(page.get_by_role("alert")).to_contain_text("Rows that break a rule: 1.")
    expect(page.get_by_role("row", name="status")).to_contain_text("2")
    expect(page.locator("table.stack").first).to_be_visible()
    reader.shoot("story-statement-refused")
    page.get_by_label("File of orders").set_input_files(file(*GOOD))
    reader.press("Give it")
    expect(page.get_by_role("status").first).to_contain_text("Taken.")
    expect(page.get_by_role("link", name="Its findings")).to_be_visible()

    reader.open("/order-statements")
    page.get_by_label("Business day").fill(DAY)
    page.get_by_label("File of orders").set_input_files(file(GOOD[0]))
    reader.press("Give it")
    expect(page.get_by_text("there is a statement: revision 1, 2 orders")).to_be_visible()
    page.get_by_label("File of orders").set_input_files(file(GOOD[0]))
    page.get_by_label("replace the statement that is there").check()
    reader.press("Give it")

    expect(page.get_by_text("revision 2.")).to_be_visible()
    [found] = list_statements(shop.services, limit=9)
    assert (DAY, 2, 1) == (found.date, found.revision, found.rows)
    told = [status for text in reader.complaints for status in re.findall(r"\b4\d\d\b", text)]
    assert (["422", "409"], 2) == (told, len(reader.complaints))
    reader.complaints.clear()
    reader.assert_content()


def test_a_session_that_is_over_takes_nothing(shop: Shop, new_reader: NewReader) -> None:
    """The way leads to the login, also of what a script has sent."""
    reader = new_reader("admin", "orders")
    page = reader.open("/order-statements")
    page.get_by_label("Business day").fill(DAY)
    page.get_by_label("File of orders").set_input_files(file(*GOOD))
    end_session(shop.services, next(each["value"] for each in page.context.cookies() if each["name"] == COOKIE))

    reader.press("Give it")

    expect(page).to_have_url(re.compile("/console/login"))
    assert [] == list_statements(shop.services, limit=1)


def test_a_statement_is_given_without_a_script(shop: Shop, new_reader: NewReader) -> None:
    """The browser sends the file by itself."""
    reader = new_reader("ops", "orders", language="zh", scripts=False)
    page = reader.open("/order-statements")
    page.get_by_label("营业日").fill(DAY)
    page.get_by_label("订单文件").set_input_files(file(*GOOD))

    page.get_by_role("button", name="提交").click()

    expect(page.get_by_role("status")).to_contain_text("已接收")
