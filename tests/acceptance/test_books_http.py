"""The ledger and the daily close over HTTP (API.md, Back office)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from coupon_workers.runtime.services import Services
from tests.support.closing import ClosingShop
from tests.support.http_caller import Caller
from tests.support.http_shop import Shop

DAY = "2026-11-11"
CLOSE = f"/v1/daily-closes/{DAY}"
AMOUNTS = {
    "currency": "CNY", "issued_count": 2, "issued_amount": 4_000, "redeemed_count": 2, "redeemed_amount": 4_000,
    "returned_count": 1, "returned_amount": 2_000, "expired_count": 0, "expired_amount": 0, "adjusted_amount": 0,
    "expense_net": 2_000,
}  # fmt: skip


@pytest.fixture
def books(services: Services) -> ClosingShop:
    """Two orders of the 11th, one returned on that day."""
    books = ClosingShop(services).at("2026-11-11T12:00+08:00")
    template = books.template(template_id=7, name="双十一")
    books.buy("o1", template)
    books.buy("o2", template)
    books.refund("o2", "r1")
    return books


def _clerk(books: ClosingShop, days: int) -> Caller:
    """An administrator so many days after the orders."""
    now = books.clock.now + timedelta(days=days)
    return Shop(replace(books.services, clock=lambda: now)).caller("admin")


def test_a_day_is_closed_read_opened_again_and_closed_anew(books: ClosingShop) -> None:
    """Each answer shows the whole day; the file has the same."""
    clerk = _clerk(books, days=2)
    closed = clerk.ask("POST", CLOSE).ok()
    again = clerk.ask("POST", CLOSE).ok()
    read = clerk.ask("GET", CLOSE).ok()
    file = clerk.ask("GET", f"{CLOSE}.csv")
    opened = clerk.ask("POST", f"{CLOSE}/reopen", {"reason": "  a late refund "}).ok()
    anew = clerk.ask("POST", CLOSE).ok()

    assert closed == again == read
    assert [{**AMOUNTS, "template_id": "7", "template_name": "双十一"}] == closed["rows"]
    assert ([AMOUNTS], DAY, "closed", 1) == (closed["totals"], closed["date"], closed["status"], closed["revision"])
    assert ("text/csv; charset=utf-8", 200) == (file.headers["content-type"], file.status)
    lines = file.body.decode().splitlines()
    assert lines[0].startswith("date,revision,template_id,template_name,currency,issued_count,issued_amount,")
    assert [f"{DAY},1,7,双十一,CNY,2,4000,2,4000,1,2000,0,0,0,2000"] == lines[1:]
    assert ("reopened", "a late refund") == (opened["status"], opened["reason"])
    assert opened["reopened_at"] and opened["reopened_by"] == closed["closed_by"]
    assert ("closed", 2, closed["rows"]) == (anew["status"], anew["revision"], anew["rows"])
    assert ["reopened", "closed"] == [revision["status"] for revision in anew["revisions"]]


def test_a_write_that_is_sent_again_is_answered_again(books: ClosingShop) -> None:
    """By its key: a day is opened once, however often the answer is lost."""
    clerk = _clerk(books, days=2)
    clerk.ask("POST", CLOSE).ok()

    first, second = (clerk.ask("POST", f"{CLOSE}/reopen", {"reason": "late"}, Idempotency_Key="k") for _ in range(2))

    assert first.ok() == second.ok()
    assert "true" == second.headers["idempotency-replayed"]
    clerk.ask("POST", f"{CLOSE}/reopen", {"reason": "late"}).problem(409, "DAY_NOT_CLOSED")


def test_a_day_that_goes_on_cannot_be_closed(books: ClosingShop) -> None:
    """The refusal says from when on; there is nothing to be read then, nor to be opened."""
    clerk = _clerk(books, days=0)

    problem = clerk.ask("POST", CLOSE).problem(409, "DAY_NOT_OVER")

    assert "2026-11-11T16:02:00Z" == problem["closable_at"]
    clerk.ask("GET", CLOSE).problem(404, "DAILY_CLOSE_NOT_FOUND")
    clerk.ask("GET", f"{CLOSE}.csv").problem(404, "DAILY_CLOSE_NOT_FOUND")
    clerk.ask("POST", f"{CLOSE}/reopen", {"reason": "x"}).problem(404, "DAILY_CLOSE_NOT_FOUND")


def test_the_ledger_is_read_by_day_and_template(books: ClosingShop) -> None:
    """In pages, with sums that are those of the day's close."""
    clerk = _clerk(books, days=2)
    first = clerk.ask("GET", f"/v1/ledger?date={DAY}&template_id=7&limit=2").ok()
    rest = clerk.ask("GET", f"/v1/ledger?date={DAY}&template_id=7&limit=2&cursor={first['next_cursor']}").ok()

    entries = first["items"] + rest["items"]

    assert ["refund", "redeem", "redeem"] == [entry["kind"] for entry in entries]
    assert (None, ["7"] * 3) == (rest["next_cursor"], [entry["template_id"] for entry in entries])
    debits = sum(entry["amount"] for entry in entries if entry["debit_account"] == "coupon_expense")
    credits = sum(entry["amount"] for entry in entries if entry["credit_account"] == "coupon_expense")
    assert clerk.ask("POST", CLOSE).ok()["totals"][0]["expense_net"] == debits - credits
    assert [] == clerk.ask("GET", "/v1/ledger?date=2026-11-12").ok()["items"]
    assert 3 == len(clerk.ask("GET", "/v1/ledger").ok()["items"])


def test_the_ledger_is_read_by_user_and_order(books: ClosingShop) -> None:
    """Over all days, in pages; of another user, or of another's order of that number, there is nothing."""
    clerk, whose = _clerk(books, days=2), f"/v1/ledger?user_id={books.user}"
    first = clerk.ask("GET", f"{whose}&limit=2").ok()
    rest = clerk.ask("GET", f"{whose}&limit=2&cursor={first['next_cursor']}").ok()

    entries = first["items"] + rest["items"]

    assert sorted((int(entry["entry_id"]) for entry in entries), reverse=True) == [int(e["entry_id"]) for e in entries]
    assert (3, None, {books.user}) == (len(entries), rest["next_cursor"], {entry["user_id"] for entry in entries})
    of_order = clerk.ask("GET", f"{whose}&order_no=o1").ok()["items"]
    assert [entry for entry in entries if entry["order_no"] == "o1"] == of_order != []
    for nothing in ("user_id=nobody", "user_id=nobody&order_no=o1", f"user_id={books.user}&order_no=o9"):
        assert [] == clerk.ask("GET", f"/v1/ledger?{nothing}").ok()["items"]


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("order_no=o1", ["order_no"]),
        ("order_no=o1&date=2026-11-11", ["order_no"]),
        (f"user_id=u&date={DAY}", ["date"]),
        (f"user_id=u&date={DAY}&template_id=7&order_no=o1", ["date", "template_id"]),
        ("user_id=", ["user_id"]),
        ("user_id=u&order_no=", ["order_no"]),
        ("user_id=u&order_no=a/b", ["order_no"]),
        ("user_id=a%07b", ["user_id"]),
        ("user_id=u&cursor=x", ["cursor"]),
    ],
)
def test_what_does_not_name_a_user_s_bookings_is_refused(books: ClosingShop, query: str, fields: list[str]) -> None:
    """An order without its user, a user beside a day or a template, what nobody can be called."""
    assert fields == _clerk(books, days=2).ask("GET", f"/v1/ledger?{query}").bad_fields()


def _asked(books: ClosingShop, **changed: Any) -> dict[str, Any]:
    [(coupon,)] = books.rows("SELECT coupon_id FROM coupon_use WHERE order_no = 'o1'")
    body = {"reference": "t1", "user_id": books.user, "order_no": "o1", "coupon_no": str(coupon)}
    return body | {"amount": -500, "reason": "too much was taken off"} | changed


def test_an_adjustment_is_booked_once_and_read(books: ClosingShop) -> None:
    """With who and why; another one under its reference is refused, and the day's close has it."""
    clerk = _clerk(books, days=0)

    booked = clerk.ask("POST", "/v1/ledger/adjustments", _asked(books)).ok()
    again = clerk.ask("POST", "/v1/ledger/adjustments", _asked(books)).ok()
    read = clerk.ask("GET", "/v1/ledger?limit=1").ok()["items"]

    assert booked == again == read[0]
    assert ("adjustment", "coupon_expense", 500, "too much was taken off") == (
        booked["debit_account"], booked["credit_account"], booked["amount"], booked["reason"],
    )  # fmt: skip
    assert booked["operator"] and DAY == booked["date"]
    other = clerk.ask("POST", "/v1/ledger/adjustments", _asked(books, amount=500))
    assert ["reference"] == other.bad_fields()
    stranger = _asked(books, reference="t2", user_id="bob")
    clerk.ask("POST", "/v1/ledger/adjustments", stranger).problem(404, "COUPON_NOT_FOUND")
    closed = _clerk(books, days=2).ask("POST", CLOSE).ok()["totals"][0]
    assert (-500, 1_500) == (closed["adjusted_amount"], closed["expense_net"])


@pytest.mark.parametrize(
    ("field", "value"),
    [("amount", value) for value in (0, 1.0, "1", True, None, 2**53, -(2**53))]
    + [
        ("reference", ""),
        ("reference", "x" * 65),
        ("reason", " "),
        ("reason", 1),
        ("coupon_no", "01"),
        ("user_id", "a b"),
    ]
    + [("order_no", "a/b"), ("order_no", ""), ("currency", "CNY")],
)
def test_an_adjustment_that_breaks_a_rule_is_named(books: ClosingShop, field: str, value: Any) -> None:
    """Each field; nothing is booked."""
    before = books.ledger()

    refused = _clerk(books, days=0).ask("POST", "/v1/ledger/adjustments", _asked(books, **{field: value}))

    assert [field] == refused.bad_fields()
    assert before == books.ledger()


@pytest.mark.parametrize(
    "day", ["2026-13-01", "20261111", "2026-11-11T00:00:00Z", "1999-12-31", "9999-12-31", "0", "x"]
)
def test_what_is_no_day_is_named(books: ClosingShop, day: str) -> None:
    """In a path and in a query; what the other fields may not hold, likewise."""
    clerk = _clerk(books, days=2)

    for method, address in (
        ("GET", f"/v1/daily-closes/{day}"),
        ("POST", f"/v1/daily-closes/{day}"),
        ("GET", f"/v1/daily-closes/{day}.csv"),
        ("GET", f"/v1/ledger?date={day}"),
    ):
        assert ["date"] == clerk.ask(method, address).bad_fields()


def test_bad_fields_are_named(books: ClosingShop) -> None:
    """Reasons that say nothing, cursors that no page gave, fields that are unknown."""
    clerk = _clerk(books, days=2)
    clerk.ask("POST", CLOSE).ok()

    for body in ({}, {"reason": ""}, {"reason": "  "}, {"reason": "x" * 501}, {"reason": 1}):
        assert ["reason"] == clerk.ask("POST", f"{CLOSE}/reopen", body).bad_fields()
    assert ["who"] == clerk.ask("POST", f"{CLOSE}/reopen", {"reason": "x", "who": "me"}).bad_fields()
    assert ["template_id"] == clerk.ask("GET", "/v1/ledger?template_id=x").bad_fields()
    for cursor in ("x", "WyJ4IiwxLDFd"):  # the second is ["x",1,1]
        assert ["cursor"] == clerk.ask("GET", f"/v1/ledger?cursor={cursor}").bad_fields()


def test_the_books_are_an_administrators(books: ClosingShop) -> None:
    """No other scope opens them."""
    shop = Shop(books.services)

    for caller in (shop.caller("storefront", "orders", "ops"), shop.caller()):
        for method, address in (
            ("GET", CLOSE),
            ("POST", CLOSE),
            ("GET", f"{CLOSE}.csv"),
            ("GET", "/v1/ledger"),
            ("POST", "/v1/ledger/adjustments"),
        ):
            assert caller.ask(method, address).status in (401, 403)
