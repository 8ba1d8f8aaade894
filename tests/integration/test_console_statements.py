"""The order centre's statements in the console: given whole or not at all, never over one that was not seen."""

from __future__ import annotations

from datetime import date

import pytest
from sqlalchemy import text

from coupon_workers.errors import NotFound
from coupon_workers.reconciliation.statement_reading import read_statement
from tests.support.console_money_pages import DAY, statement_page
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop
from tests.support.statement import give, said
from web.upload_form import MOST_FILE

PATH = "/order-statements"
GOOD = ("o1,ann,paid,13000,2000,CNY", "o2,bob,closed,0,0,JPY")


@pytest.fixture
def zoe(shop: Shop) -> Visitor:
    """Who may give statements and look at findings."""
    return Visitor(shop, "admin", "orders")


def revision(shop: Shop) -> int:
    """The latest of the day; 0: none."""
    try:
        return read_statement(shop.services, date.fromisoformat(DAY)).revision
    except NotFound:
        return 0


def test_a_statement_is_given_and_compared(shop: Shop, zoe: Visitor) -> None:
    """The page of the day shows the comparison and leads to its findings; the log says who gave it."""
    answer = zoe.send_file(PATH, said(*GOOD), "orders.csv", date=DAY)
    page = zoe.page(f"{PATH}/{DAY}")

    assert (303, 1) == (answer.status_code, revision(shop))
    assert f"{PATH}/{DAY}" in answer.location
    assert "/console/findings?run=" in page and "waits for a worker" in page
    assert DAY in zoe.page(PATH)
    assert "pending" != zoe.get(f"/data{PATH}/{DAY}").json["stands"]
    with shop.services.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT action, subject FROM audit_log WHERE operator = :key_id ORDER BY audit_id"),
            {"key_id": zoe.key.record.key_id},
        ).all()
    assert ["statement.take", "reconciliation.ask"] == [row.action for row in rows]
    assert f"statement:{DAY}" == rows[0].subject


def test_one_that_is_there_is_replaced_only_when_that_was_said(shop: Shop, zoe: Visitor) -> None:
    """And only the one that was looked at: of two at once the second is told. The same file again changes nothing."""
    give(shop.services, DAY, *GOOD)

    warned = zoe.send_file(PATH, said(GOOD[0]), "orders.csv", date=DAY)
    same = zoe.send_file(PATH, said(*GOOD), "orders.csv", date=DAY)
    zoe.send_file(PATH, said(GOOD[0]), "orders.csv", date=DAY, replace="on", over="1")
    late = zoe.send_file(PATH, said(GOOD[1]), "orders.csv", date=DAY, replace="on", over="1")

    assert (409, 303, 409) == (warned.status_code, same.status_code, late.status_code)
    assert "revision 1, 2 orders" in warned.text and 'name="replace"' in warned.text
    assert "revision 2, 1 orders" in late.text and 'name="over" value="2"' in late.text
    assert 2 == revision(shop)


def test_bad_rows_are_told_with_their_numbers(shop: Shop, zoe: Visitor) -> None:
    """Every field of the first hundred; nothing is taken."""
    many = [f"o{number},ann,eaten,1,1,CNY" for number in range(120)]

    few = zoe.send_file(PATH, said("o1,ann,paid,1.5,0,cny", "o2,b", GOOD[0], GOOD[0]), "orders.csv", date=DAY)
    lot = zoe.send_file(PATH, said(*many), "orders.csv", date=DAY)

    assert (422, 422, 0) == (few.status_code, lot.status_code, revision(shop))
    for told in (
        "Rows that break a rule: 3.",
        "It must be a whole number of minor units, 0 or more.",
        "A currency is a code of three letters, such as CNY.",
        "The row has more or fewer fields than the header.",
        "The order stands in an earlier line already.",
    ):
        assert told in few.text
    assert [2, 3, 5] == sorted({int(line) for line in _lines(few.text)})
    assert "Rows that break a rule: 120. The first 100 are named." in lot.text
    assert 100 == len(_lines(lot.text))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "The file is empty. Of a day without orders"),
        (b"a,b\n1,2\n", "The file has no header: its first row must name the columns."),
        (b"order_no,user_id\n1,2\n", "The file lacks a column."),
        (said(header="order_no,order_no,user_id,status,paid_amount,discount_amount,currency"), "a column twice"),
        (said(header="order_no,user_id,status,paid_amount,discount_amount,currency,shop"), "has columns that"),
        ("order_no,商品".encode("gbk"), "The file lacks a column."),
        (b"\xff\xfeo\x00\n\x00", "The file is not in UTF-8."),
        (b"PK\x03\x04\x00\x00\x00", "The file is not in UTF-8."),
    ],
)
def test_a_file_that_cannot_be_read_is_told_at_its_field(shop: Shop, zoe: Visitor, content: bytes, told: str) -> None:
    """With the day as it was typed."""
    answer = zoe.send_file(PATH, content, "orders.csv", date=DAY)

    assert (422, 0) == (answer.status_code, revision(shop))
    assert told in answer.text and f'value="{DAY}"' in answer.text


@pytest.mark.parametrize(
    ("day", "told"), [("soon", "Write a day"), ("", "Write a day"), ("2999-01-01", "It must not lie in the future.")]
)
def test_a_day_that_cannot_be_is_told(shop: Shop, zoe: Visitor, day: str, told: str) -> None:
    """Nothing is taken."""
    answer = zoe.send_file(PATH, said(*GOOD), "orders.csv", date=day)

    assert 422 == answer.status_code
    assert told in answer.text


def test_a_form_without_a_file_or_too_large_is_refused(shop: Shop, zoe: Visitor) -> None:
    """Before it is read."""
    without = zoe.send_file(PATH, b"", "", date=DAY)
    large = zoe.send_file(PATH, b"x" * (MOST_FILE + 1), "orders.csv", date=DAY)

    assert (422, 413, 0) == (without.status_code, large.status_code, revision(shop))
    assert "Fill this in." in without.text


def test_giving_needs_the_scope_orders(shop: Shop) -> None:
    """An admin reads, a key of neither sees nothing, and nobody gives with another's form."""
    admin, ops, clerk = Visitor(shop, "admin"), Visitor(shop, "ops"), Visitor(shop, "ops", "orders")
    path = statement_page(shop)

    refused = admin.send_file(PATH, said(*GOOD), "orders.csv", date="2026-11-09")
    stale = clerk.client.post(f"/console{PATH}?form_token=x", data={"date": DAY}, content_type="multipart/form-data")

    assert 403 == refused.status_code == stale.status_code == ops.get(PATH).status_code
    assert "log in with a key that has the scope orders too" in admin.page(PATH)
    assert 'type="file"' in clerk.page(PATH)
    assert "/console/findings" in admin.page(path) and "Findings are for keys of the scope admin." in clerk.page(path)
    assert 404 == clerk.get(f"{PATH}/2026-11-01").status_code


def _lines(page: str) -> list[str]:
    return [
        part.partition("<")[0]
        for part in page.split('<th scope="row" class="number">')[1:]
        if "<code>" in part or "the row" in part
    ]
