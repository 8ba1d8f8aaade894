"""Findings in the console: listed by what they are, approved about the amount that was read, left with a reason."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest

from coupon_workers.reconciliation.finding_reading import read_finding, read_findings
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.run import perform_run
from tests.support.console_money_pages import DAY, compared
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop
from tests.support.reconciling import ReconDesk, difference


def test_a_finding_shows_both_sides_and_the_money(shop: Shop, zoe: Visitor) -> None:
    """In the reader's own words; the amount stands in the form that approves it."""
    finding_id = compared(shop)

    page = zoe.page(f"/findings/{finding_id}")

    found = read_finding(shop.services, int(finding_id))
    assert "another discount" in page and "book the difference" in page
    assert f'name="amount" value="{found.amount}"' in page
    assert '<th scope="row">Discount</th><td>CN¥20.00</td><td>CN¥19.00</td>' in page
    assert re.search(
        r'<th scope="row">Redeemed at</th><td><time[^>]+>11 Nov 2026, 04:00:00</time>.*</td><td>—</td>', page
    )


def test_a_side_that_is_missing_is_dashes(shop: Shop, zoe: Visitor) -> None:
    """An order that the order centre does not know has its own side, with money and words."""
    here = {"discount": 2_000, "payable": 17_500, "status": "partly_refunded"}
    ReconDesk(shop.services).record(
        [difference("order o1 of ann", "redeemed_without_order", evidence={"here": here, "there": None})]
    )
    [found] = read_findings(shop.services, limit=1)

    page = zoe.page(f"/findings/{found.finding_id}")

    assert "To be paid</th><td>17,500 in minor units</td><td>—</td>" in page
    assert "Status</th><td>partly refunded</td><td>—</td>" in page
    assert "{&#34;" not in page and "payable" not in page


@pytest.mark.parametrize(
    ("here", "there", "told"),
    [
        ({"discount": 2_000}, None, "<td>CN¥20.00</td><td>—</td>"),
        (None, {"discount": 1_900}, "<td>—</td><td>CN¥19.00</td>"),
        (
            {"discount": 2_000, "currency": "CNY"},
            {"discount": 1_900, "currency": "JPY"},
            "<td>CN¥20.00</td><td>¥1,900</td>",
        ),
        ({"discount": 2_000, "currency": "CNY"}, {"paid": 17_500}, "<td>CN¥20.00</td><td>—</td>"),
    ],
)
def test_money_stands_beside_a_side_that_is_missing(
    shop: Shop, zoe: Visitor, here: dict[str, Any] | None, there: dict[str, Any] | None, told: str
) -> None:
    """In the finding's currency, or in that which its side names; what is not there is a dash, never a nought."""
    evidence = {"here": here, "there": there}
    found = difference("order o1 of ann", "currency_differs", evidence=evidence, currency="CNY", amount_minor=0)
    ReconDesk(shop.services).record([found])
    [finding] = read_findings(shop.services, limit=1)

    page = zoe.page(f"/findings/{finding.finding_id}")

    assert f'<th scope="row">Discount</th>{told}' in page


def test_what_a_repair_did_is_told_in_words(shop: Shop, zoe: Visitor) -> None:
    """Its bookings with their money, in both languages; no JSON."""
    path = f"/findings/{compared(shop)}"
    zoe.done(f"{path}/approve")

    english = zoe.page(path)
    chinese = Visitor(shop, "admin", language="zh").page(path)

    assert "<dt>Bookings beside it</dt>" in english and "Amount -CN¥1.00" in english
    assert "<dt>调整记账</dt>" in chinese and "<dt>账本记录</dt>" in chinese
    assert "{&#34;" not in english and "[&#34;" not in english


def test_it_is_approved_about_the_amount_that_was_read(shop: Shop, zoe: Visitor) -> None:
    """Once, by the key that was used, with a booking; about another amount it is refused."""
    finding_id = compared(shop)
    amount = read_finding(shop.services, int(finding_id)).amount
    path = f"/findings/{finding_id}"

    outdated = zoe.post(f"{path}/approve", amount="7")
    zoe.done(f"{path}/approve", amount=str(amount), reason="the centre is right")

    found = read_finding(shop.services, int(finding_id))
    assert 409 == outdated.status_code and "Another amount is at stake by now" in outdated.text
    assert ("approved", zoe.key.record.key_id, "the centre is right") == (found.state, found.decided_by, found.comment)
    assert 1 == len(
        [each for each in shop.desk.admin.ask("GET", "/v1/ledger").ok()["items"] if each["kind"] == "adjustment"]
    )
    assert "Approve the repair" not in zoe.page(path)


def test_it_is_left_with_a_reason_only(shop: Shop, zoe: Visitor) -> None:
    """Which is shown; decided, it is decided."""
    finding_id = compared(shop)
    path = f"/findings/{finding_id}"

    without = zoe.post(f"{path}/ignore", reason="  ")
    zoe.done(f"{path}/ignore", reason="a test order")

    assert 422 == without.status_code
    assert "“a test order”" in zoe.page(path)
    assert 409 == zoe.post(f"{path}/approve").status_code


def test_the_inbox_is_what_is_open_and_filters(shop: Shop, zoe: Visitor) -> None:
    """By state, kind and class; the file has the same."""
    compared(shop)
    ReconDesk(shop.services).record([difference("template 7"), difference("template 8", "gate_stock_differs")])

    assert 3 == _rows(zoe, "")
    assert 2 == _rows(zoe, "?kind=stock")
    assert 1 == _rows(zoe, "?kind=stock&class=gate_stock_differs")
    assert 0 == _rows(zoe, "?state=ignored")
    assert "There is none of these." in zoe.page("/findings?state=ignored")
    file = zoe.get("/findings.csv?kind=stock")
    assert 3 == len(file.text.splitlines()) and "attachment" in file.headers["Content-Disposition"]


def test_a_class_is_chosen_among_those_that_there_are(zoe: Visitor) -> None:
    """In words, by what is compared; one that an address names and nobody knows stays named."""
    page, other = zoe.page("/findings?class=gate_stock_differs"), zoe.page("/findings?class=of_tomorrow")

    assert '<optgroup label="stock">' in page and '<option value="discount_differs">another discount</option>' in page
    assert '<option value="gate_stock_differs" selected>the stock in Redis is wrong</option>' in page
    assert '<option value="of_tomorrow" selected>of_tomorrow</option>' in other
    assert "of_tomorrow" not in page


def _rows(zoe: Visitor, query: str) -> int:
    return len(re.findall(r'<th scope="row">', zoe.page(f"/findings{query}")))


def test_a_reconciliation_is_asked_for_once(shop: Shop, zoe: Visitor) -> None:
    """And its page tells when it is through."""
    found = re.search(r'name="allotted" value="([^"]+)"', zoe.page("/reconciliations"))
    assert found is not None
    fields = {"kind": "orders", "date": DAY, "allotted": found[1]}

    first, again = (zoe.done("/reconciliations", **fields) for _ in range(2))

    run_id = first.rpartition("/")[2].partition("?")[0]
    assert first == again
    assert not zoe.get(f"/data/reconciliations/{run_id}").get_json()["over"]
    perform_run(shop.services, int(run_id))
    assert zoe.get(f"/data/reconciliations/{run_id}").get_json()["over"]
    assert "Everything agrees." in zoe.page(f"/reconciliations/{run_id}")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"kind": "orders"}, "Orders need a day."),
        ({"kind": "stock", "date": DAY}, "Only orders have a day."),
        ({"kind": "orders", "date": "soon"}, "Write a day, such as 2026-11-11."),
        ({"kind": ""}, "Choose one."),
    ],
)
def test_what_is_wrong_with_the_question_is_told(shop: Shop, zoe: Visitor, fields: dict[str, str], told: str) -> None:
    """At its field; nothing is asked for."""
    found = re.search(r'name="allotted" value="([^"]+)"', zoe.page("/reconciliations"))
    assert found is not None

    answer = zoe.post("/reconciliations", allotted=found[1], **fields)

    assert 422 == answer.status_code and told in answer.text
    assert "Nothing was compared yet." in answer.text


def test_a_run_leads_to_its_findings(shop: Shop, zoe: Visitor) -> None:
    """Class by class, with what is at stake."""
    compared(shop)
    [run] = [
        run
        for run in shop.desk.admin.ask("GET", "/v1/reconciliations?kind=orders").ok()["items"]
        if run["date"] == date.fromisoformat(DAY).isoformat()
    ]

    page = zoe.page(f"/reconciliations/{run['run_id']}")

    assert ReconKind.ORDERS == run["kind"]
    assert "another discount" in page and "CN¥" in page
    assert 1 == _rows(zoe, f"?run={run['run_id']}&state=all")
