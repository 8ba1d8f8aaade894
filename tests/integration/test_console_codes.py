"""Batches of codes in the console: made with a bound, fetched once, revoked with a reason, and a code looked up."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.codes.code_generation import run_generation
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop


def _fields(zoe: Visitor, template_id: str) -> dict[str, str]:
    found = re.search(r'name="allotted" value="([^"]+)"', zoe.page("/code-batches/new"))
    assert found is not None
    return {
        "template_id": template_id,
        "quantity": "20",
        "length": "12",
        "prefix": "gift-",
        "channel": "",
        "check_digit": "on",
        "expires_at": "",
        "allotted": found[1],
    }


def _made(shop: Shop, zoe: Visitor) -> str:
    """The identity of twenty codes that are generated."""
    leads = zoe.done("/code-batches/new", **_fields(zoe, shop.desk.open(total_quantity=30)))
    number = leads.rpartition("/")[2].partition("?")[0]
    run_generation(shop.services, int(number))
    return number


def _read(shop: Shop, number: str) -> dict[str, Any]:
    return dict(shop.desk.admin.ask("GET", f"/v1/code-batches/{number}").ok())


def test_codes_are_made_fetched_once_and_looked_up(shop: Shop, zoe: Visitor) -> None:
    """The second download says why there is none; a code that is typed in any spelling is found."""
    number = _made(shop, zoe)
    assert "They can be fetched once" in zoe.page(f"/code-batches/{number}")

    file = zoe.post(f"/code-batches/{number}/codes.csv")
    codes = file.text.split()[1:]
    again = zoe.post(f"/code-batches/{number}/codes.csv")

    assert (200, 20, True) == (file.status_code, len(codes), codes[0].startswith("GIFT-"))
    assert "attachment" in file.headers["Content-Disposition"]
    assert 410 == again.status_code and "they can be fetched once" in again.text
    assert "Fetch the codes" not in zoe.page(f"/code-batches/{number}")
    assert "unused" in zoe.post("/codes/lookup", code=f" {codes[3].lower()} ").text
    assert ["codes.create", "codes.fetch"] == [row[0] for row in _audited(shop, number)]


def test_looking_at_the_page_fetches_nothing(shop: Shop, zoe: Visitor) -> None:
    """Nor does its address without a form of the session."""
    number = _made(shop, zoe)

    assert 404 == zoe.get(f"/code-batches/{number}/codes.csv").status_code
    assert 403 == zoe.client.post(f"/console/code-batches/{number}/codes.csv").status_code
    assert "kept" == _read(shop, number)["export"]


def test_codes_are_revoked_with_a_reason(shop: Shop, zoe: Visitor) -> None:
    """It stands in the log; without one nothing is done."""
    number = _made(shop, zoe)

    without = zoe.post(f"/code-batches/{number}/revoke", reason=" ")
    zoe.done(f"/code-batches/{number}/revoke", reason="the printer lost a box")

    assert 422 == without.status_code
    assert "revoked" == _read(shop, number)["status"]
    assert ("codes.revoke", "the printer lost a box") == _audited(shop, number)[-1]
    assert 'class="badge bad" data-stands="revoked' in zoe.page(f"/code-batches/{number}")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"quantity": ""}, "Fill this in."),
        ({"quantity": "many"}, "Write a whole number"),
        ({"quantity": "31"}, "has not so many units left"),
        ({"length": "5"}, "at most 0 more can be made"),
        ({"length": "2"}, "This is too small."),
        ({"prefix": "täglich"}, "Only letters"),
        ({"template_id": ""}, "Choose one."),
        ({"expires_at": "2099-01-01T00:00"}, "after the end of claiming"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(shop: Shop, zoe: Visitor, changed: dict[str, str], told: str) -> None:
    """How many there can be, too; nothing is made."""
    fields = _fields(zoe, shop.desk.open(total_quantity=30)) | changed

    answer = zoe.post("/code-batches/new", **fields)

    assert 422 == answer.status_code
    assert told in answer.text and 'aria-invalid="true"' in answer.text
    assert [] == shop.desk.admin.ask("GET", "/v1/code-batches").ok()["items"]


def test_a_wrong_code_is_told_so(zoe: Visitor) -> None:
    """And does not stand in an address."""
    answer = zoe.post("/codes/lookup", code="ABCD-EFGH-JKLM")

    assert 422 == answer.status_code and "No code reads so." in answer.text


def _audited(shop: Shop, number: str) -> list[tuple[str, str | None]]:
    with shop.services.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT action, after ->> 'reason' FROM audit_log WHERE subject = :subject ORDER BY audit_id"),
            {"subject": f"code_batch:{number}"},
        )
        return [(row[0], row[1]) for row in rows]
