"""What no page of the console sends, and somebody does all the same: told as it is, and no failure of ours."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop
from web.page import page


@pytest.fixture
def zoe(shop: Shop) -> Visitor:
    """An operator."""
    return Visitor(shop, "admin", "ops")


def _cursor(*position: Any) -> str:
    return str(page([1, 2], 1, lambda item: item, lambda _: list(position))["next_cursor"])


@pytest.mark.parametrize(
    ("path", "field"),
    [("/risk-lists/take-off?name=block", "value"), ("/daily-closes/2026-11-11/reopen", "reason"), ("/login", "key")],
)
def test_a_form_with_u0000_is_refused(zoe: Visitor, path: str, field: str) -> None:
    """No database holds it: it is named before one is asked."""
    answer = zoe.post(path, dimension="user", **{field: "a\x00b"})

    assert 422 == answer.status_code
    assert "U+0000" in answer.text


@pytest.mark.parametrize("name", ["_scheme", "_external", "_method", "_anchor", "endpoint"])
def test_an_address_may_name_anything(zoe: Visitor, name: str) -> None:
    """The way to the list's other pages keeps it, and leads nowhere else."""
    answer = zoe.get(f"/approvals?cursor={_cursor(7)}&{name}=javascript")

    assert 200 == answer.status_code
    links = [unescape(link) for link in re.findall(r'<a class="button" href="([^"]+)">Newest<', answer.text)]
    assert [f"/console/approvals?{name}=javascript"] == links


@pytest.mark.parametrize("zone", ["Asia", "America/Nowhere", "../etc"])
def test_a_time_zone_that_is_none_is_told_at_its_field(zoe: Visitor, zone: str) -> None:
    """Also where the machine has a folder of that name."""
    found = re.search(r'name="allotted" value="([^"]+)"', zoe.page("/templates/new"))
    assert found is not None

    answer = zoe.post("/templates/new", allotted=found[1], timezone=zone, claim_start="2026-11-11T00:00")

    assert 422 == answer.status_code
    assert "A time zone has a name such as Asia/Shanghai." in answer.text


@pytest.mark.parametrize("instant", ["2026-11-11T00:00:00+23:59", "0001-01-01T00:00:00+23:59", "2026-11-11", "now"])
@pytest.mark.parametrize(("path", "last"), [("/keys", "k"), ("/risk-reviews", 7)])
def test_a_cursor_holds_an_instant_or_is_refused(zoe: Visitor, path: str, last: Any, instant: str) -> None:
    """However far its offset is from the zones that PostgreSQL knows."""
    assert zoe.get(f"{path}?cursor={_cursor(instant, last)}").status_code in (200, 422)
