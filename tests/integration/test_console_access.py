"""The audit log and the keys in the console."""

from __future__ import annotations

import re

import pytest

from coupon_workers.access.api_key import create_key, verify_key
from tests.support.closing import CLERK
from tests.support.console_money_pages import closed
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop


@pytest.fixture
def keeper(shop: Shop) -> Visitor:
    """Whoever keeps the keys."""
    return Visitor(shop, "admin", name="keeper")


def _allotted(page: str) -> str:
    found = re.search(r'name="allotted" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_the_log_shows_what_changed(shop: Shop, keeper: Visitor) -> None:
    """Only what differs, struck out and put in."""
    template_id = shop.desk.open(total_quantity=10)
    shop.desk.change(template_id, total_quantity=20).ok()

    page = keeper.page("/audit?action=template.change")

    assert re.search(r'total_quantity</code> <del class="was">10</del> <ins class="becomes">20</ins>', page)
    assert "template.publish</code>" not in page


def test_the_log_is_narrowed_down(shop: Shop, keeper: Visitor) -> None:
    """By who, what, subject and time; the reader's clock is in the reader's zone."""
    ours, other = shop.desk.draft(), shop.desk.draft()
    keeper.client.set_cookie("cw_zone", "Asia/Shanghai", path="/console")

    by_subject = keeper.page(f"/audit?subject=template:{ours}")

    assert (True, False) == (ours in by_subject, other in by_subject)
    for query in ("key_id=nobody", "since=2999-01-01T00:00", "until=2001-01-01T00:00", "action=day.close"):
        assert "No row is like this." in keeper.page(f"/audit?{query}"), query
    for bad in ("since=yesterday", "since=0001-01-01T00:00", "until=9999-12-31T23:59-20:00"):
        assert "Write a date and a time" in keeper.page(f"/audit?{bad}"), bad


def test_who_did_it_is_told_by_name(shop: Shop, keeper: Visitor) -> None:
    """With the id on hover, and what else the key did behind it; what is no key is called as the core calls it."""
    zoe = Visitor(shop, "admin", name="Zoe of the warehouse")
    shop.desk.draft(name="Autumn", approval_required=True)
    [template] = shop.desk.admin.ask("GET", "/v1/templates").ok()["items"]
    zoe.done(f"/templates/{template['template_id']}/publish")
    closed(shop)

    asked, days = keeper.page("/approvals"), keeper.page("/daily-closes")

    key_id = zoe.key.record.key_id
    assert f'<a href="/console/audit?key_id={key_id}" title="{key_id}">Zoe of the warehouse</a>' in asked
    assert f"<code>{CLERK}</code>" in days
    assert re.search(r'<td><a class="muted mono" href="[^"]+">system</a></td>', keeper.page("/audit"))


def test_a_scope_is_called_by_its_own_word(shop: Shop, keeper: Visitor) -> None:
    """A reconciliation compares orders too, and calls that otherwise."""
    create_key(shop.services.engine, name="order centre", scopes=["orders"])

    assert '<span class="badge">orders</span>' in keeper.page("/keys")
    assert '<span class="badge">订单</span>' in Visitor(shop, "admin", language="zh").page("/keys")


def test_a_key_is_shown_once(shop: Shop, keeper: Visitor) -> None:
    """It works, and no other page knows it; sent twice, the form makes one."""
    allotted = _allotted(keeper.page("/keys/new"))

    answer = keeper.post("/keys/new", name="storefront", scope="storefront", signed="on", allotted=allotted)
    again = keeper.post("/keys/new", name="storefront", scope="storefront", allotted=allotted)

    assert (201, "no-store") == (answer.status_code, answer.headers["Cache-Control"])
    found = re.search(r'value="(cw_[^"]+)"', answer.text)
    assert found is not None
    caller = verify_key(shop.services.engine, found[1])
    assert caller is not None
    assert ("storefront", {"storefront"}, True) == (caller.name, caller.scopes, caller.signed)
    assert (409, True) == (again.status_code, "has made its key already" in again.text)
    assert found[1] not in keeper.page("/keys") + again.text


def test_a_key_without_a_name_or_a_scope_is_not_made(keeper: Visitor) -> None:
    """The form comes back with what was filled in; what is wrong is at its field."""
    allotted = _allotted(keeper.page("/keys/new"))

    nameless = keeper.post("/keys/new", name="", scope="orders", allotted=allotted)
    scopeless = keeper.post("/keys/new", name="warehouse", allotted=allotted)

    assert (422, 422) == (nameless.status_code, scopeless.status_code)
    assert 'value="orders" checked' in nameless.text
    assert 'value="warehouse"' in scopeless.text


def test_a_revoked_key_opens_nothing(shop: Shop, keeper: Visitor) -> None:
    """At this front at once; revoking it again changes nothing."""
    made = create_key(shop.services.engine, name="gone", scopes=["admin"])

    for _ in range(2):
        keeper.done(f"/keys/{made.record.key_id}/revoke")

    assert None is verify_key(shop.services.engine, made.key)
    assert 404 == keeper.post("/keys/0000000000000000/revoke").status_code
