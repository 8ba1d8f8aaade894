"""Lotteries in the console: made with odds that add up, watched, paused, ended, approved, and who has won."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import text
from werkzeug.test import TestResponse

from coupon_workers.runtime.services import Services
from tests.support.console_visitor import Visitor
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from tests.support.lottery import Fair, coupon_prize, open_lottery, thanks


def _fields(zoe: Visitor, template_id: str, **changed: str) -> dict[str, str]:
    found = re.search(r'name="allotted" value="([^"]+)"', zoe.page("/lotteries/new"))
    assert found is not None
    fields = {
        "name": "Wheel",
        "timezone": "UTC",
        "start": from_now(minutes=-1)[:16],
        "end": from_now(minutes=30)[:16],
        "per_user_limit": "3",
        "per_user_daily_limit": "",
        "rest": "on",
        "rest_name": "Thank you",
        "prizes.0.name": "Five off",
        "prizes.0.template_id": template_id,
        "prizes.0.weight": "250000",
        "prizes.0.stock": "10",
        "prizes.1.name": "",
        "prizes.1.template_id": "",
        "prizes.1.weight": "",
        "prizes.1.stock": "",
        "prizes.2.name": "A bicycle",
        "prizes.2.template_id": "",
        "prizes.2.weight": "1",
        "prizes.2.stock": "1",
        "allotted": found[1],
    }
    return fields | {name.replace("__", "."): value for name, value in changed.items()}


def _opened(shop: Shop) -> str:
    return str(shop.desk.open(total_quantity=30, claim_start=from_now(hours=-1)))


def _of_path(answer: TestResponse) -> str:
    assert 303 == answer.status_code, answer.text
    return answer.location.rpartition("/")[2].partition("?")[0]


def _read(shop: Shop, lottery_id: str) -> dict[str, Any]:
    return dict(shop.desk.admin.ask("GET", f"/v1/lotteries/{lottery_id}").ok())


def _fair(shop: Shop, stock: int = 5, **changed: Any) -> Fair:
    return open_lottery(shop.services, [coupon_prize(int(_opened(shop)), stock)], **changed)


def test_a_lottery_is_made_as_the_form_says_and_the_rest_wins_nothing(shop: Shop, zoe: Visitor) -> None:
    """Empty rows are left out; sent twice it is one; a million in all."""
    fields = _fields(zoe, _opened(shop))

    made = {_of_path(zoe.post("/lotteries/new", **fields)) for _ in range(2)}

    assert 1 == len(made)
    found = _read(shop, made.pop())
    weights = [(prize["name"], prize["weight"], prize["stock"]) for prize in found["prizes"]]
    assert [("Five off", 250_000, 10), ("A bicycle", 1, 1), ("Thank you", 749_999, 1_000_000_000)] == weights
    assert (3, None, "active") == (found["per_user_limit"], found["per_user_daily_limit"], found["status"])
    assert ["lottery.create"] == _audited(shop, found["lottery_id"])
    shop.assert_sound()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"name": ""}, "Fill this in."),
        ({"prizes__0__weight": "1000000"}, "1 are too many"),
        ({"rest": ""}, "749,999 are missing"),
        ({"prizes__0__weight": "0", "prizes__2__weight": "0", "rest": ""}, "1,000,000 are missing"),
        ({"prizes__0__weight": "-1"}, "Write a whole number"),
        ({"prizes__0__weight": "1.5"}, "Write a whole number"),
        ({"prizes__0__weight": "10%"}, "Write a whole number"),
        ({"prizes__0__weight": "1000001"}, "This is too large."),
        ({"prizes__0__weight": "9" * 40}, "Write a whole number"),
        ({"prizes__0__weight": ""}, "Fill this in."),
        ({"prizes__0__stock": "0"}, "This is too small."),
        ({"prizes__0__stock": "31"}, "has not so many units left"),
        ({"prizes__0__stock": ""}, "Fill this in."),
        ({"prizes__0__name": ""}, "Fill this in."),
        ({"rest_name": ""}, "Fill this in."),
        ({"prizes__0__template_id": "7"}, "There is no such template."),
        ({"prizes__0__template_id": "<b>"}, "Choose one."),
        ({"end": "2020-01-01T00:00"}, "It must come after the start."),
        ({"end": from_now(days=30)[:16]}, "It must not come after the claiming"),
        ({"end": "2999-01-01T00:00"}, "It may last ten years at most."),
        ({"start": "2020-01-01T00:00"}, "It must not come before the claiming"),
        ({"start": "soon"}, "Write a date and a time"),
        ({"timezone": "Nowhere/At_All"}, "A time zone has a name"),
        ({"per_user_limit": "0"}, "This is too small."),
    ],
)
def test_what_is_wrong_is_told_at_its_field(shop: Shop, zoe: Visitor, changed: dict[str, str], told: str) -> None:
    """What was typed stays, and nothing is made or set aside."""
    template_id = _opened(shop)
    fields = _fields(zoe, template_id, **changed)

    answer = zoe.post("/lotteries/new", **fields)

    assert 422 == answer.status_code
    assert told in answer.text and 'aria-invalid="true"' in answer.text
    assert 'value="A bicycle"' in answer.text
    assert [] == shop.desk.admin.ask("GET", "/v1/lotteries").ok()["items"]
    assert 30 == shop.desk.admin.ask("GET", f"/v1/templates/{template_id}").ok()["stock"]["remaining"]


def test_a_row_more_and_a_look_make_nothing(shop: Shop, zoe: Visitor) -> None:
    """Without a script: the form comes back with what was typed, and what a user will see."""
    fields = _fields(zoe, _opened(shop))

    another = zoe.post("/lotteries/new", **fields, do="row")
    look = zoe.post("/lotteries/new", **fields, do="look")
    part = zoe.post("/lotteries/preview", **fields)

    assert (200, 200, 200) == (another.status_code, look.status_code, part.status_code)
    assert 'name="prizes.2.name"' in another.text and 'name="prizes.2.name"' not in look.text
    for text_ in (look.text, part.text):
        assert "Five off <b>25%</b>" in text_ and "Thank you <b>74.9999%</b>" in text_ and "0.0001%" in text_
    assert [] == shop.desk.admin.ask("GET", "/v1/lotteries").ok()["items"]


def test_more_prizes_than_a_lottery_has_are_refused(shop: Shop, zoe: Visitor) -> None:
    """However many are sent."""
    rows = {f"prizes__{row}__{column}": "1" for row in range(300) for column in ("name", "weight", "stock")}

    answer = zoe.post("/lotteries/new", **_fields(zoe, "", **rows))

    assert 422 == answer.status_code and "These are too many." in answer.text


def test_it_is_paused_resumed_and_ended(shop: Shop, zoe: Visitor) -> None:
    """At once; pressed again it is refused or stays so; its stock goes back."""
    fair = _fair(shop)
    address = f"/lotteries/{fair.lottery_id}"

    for act, status in (("pause", "paused"), ("resume", "active"), ("end", "ended")):
        zoe.done(f"{address}/act", act=act)
        assert status == _read(shop, str(fair.lottery_id))["status"]

    assert 409 == zoe.post(f"{address}/act", act="resume").status_code
    assert 404 == zoe.post(f"{address}/act", act="explode").status_code
    told = zoe.page(address)
    assert "Resume" not in told and "End the lottery" not in told
    assert ["lottery.create", "lottery.pause", "lottery.resume", "lottery.end"] == _audited(shop, str(fair.lottery_id))
    shop.assert_sound()


def test_another_person_approves(services: Services) -> None:
    """Its maker is told so, and has no button for it; the page of another key has one. The inbox names it meanwhile."""
    template_id = _opened(Shop(services))
    shop = Shop(services, claim_rate=0, approval_budgets='{"CNY": 10000}')
    zoe, max_ = Visitor(shop, "admin"), Visitor(shop, "admin", name="Max")
    lottery_id = _of_path(zoe.post("/lotteries/new", **_fields(zoe, template_id)))
    address = f"/lotteries/{lottery_id}"

    link = f'href="/console{address}"'
    assert link in max_.page("/approvals") and link not in max_.page("/approvals?state=all")
    assert "another approves" in zoe.page(address) and 'value="approve"' not in zoe.page(address)
    assert 409 == zoe.post(f"{address}/act", act="approve").status_code
    assert 'value="approve"' in max_.page(address)
    max_.done(f"{address}/act", act="approve")

    assert "active" == _read(shop, lottery_id)["status"]
    assert link not in max_.page("/approvals") and "Nothing waits for you." in max_.page("/approvals")


def test_the_report_and_the_draws_move(shop: Shop, zoe: Visitor) -> None:
    """The script is told what the page shows; a user's draws are found by his id."""
    fair = _fair(shop, stock=2)
    fair.draw_each(["ann", "ben", "cleo"])
    fair.drain()
    address = f"/lotteries/{fair.lottery_id}"

    data = zoe.get(f"/data{address}").json or {}
    anns = zoe.page(f"{address}?user_id=ann")

    expected = {"draws": "3", "coupons": "2", "none": "1", "drawn-1": "2", "left-1": "0", "came-1": "66.6667%"}
    assert expected == {name: data["texts"][name] for name in expected}
    assert 3 == data["rows"].count("<tr>") and ">nothing<" in data["rows"]
    assert "user_id=ann" in anns and "user_id=ben" not in anns
    assert "This user has drawn nothing here." in zoe.page(f"{address}?user_id=nobody")
    assert "This user has drawn nothing here." in zoe.page(f"{address}?user_id=not+a+user")
    assert "66.6667%" in zoe.page(address)


def test_draws_come_in_pages(shop: Shop, zoe: Visitor) -> None:
    """Fifty on each; an older page does not move."""
    fair = open_lottery(shop.services, [thanks()])
    fair.draw_each(f"u{number}" for number in range(60))
    fair.drain()

    first = zoe.page(f"/lotteries/{fair.lottery_id}")
    older = re.search(r'href="/console([^"]+)" rel="next"', first)
    assert older is not None
    second = zoe.page(older[1].replace("&amp;", "&"))

    rows = '<th scope="row"><a href="/console/lotteries'
    assert (50, 10) == (first.count(rows), second.count(rows))
    assert ('id="feed"' in first, 'id="feed"' in second) == (True, False)


def test_a_lottery_is_for_operators_alone(shop: Shop) -> None:
    """Whoever looks after queues is told which scope it needs; nobody's form is refused."""
    fair = _fair(shop)
    ops, zoe = Visitor(shop, "ops"), Visitor(shop, "admin")

    for path in ("/lotteries", "/lotteries/new", f"/lotteries/{fair.lottery_id}", f"/data/lotteries/{fair.lottery_id}"):
        assert 403 == ops.get(path).status_code, path
    for path in ("/lotteries/new", "/lotteries/preview", f"/lotteries/{fair.lottery_id}/act"):
        assert 403 == zoe.client.post(f"/console{path}", data={"act": "end"}).status_code, path
    assert 404 == zoe.get("/lotteries/77").status_code
    assert "active" == _read(shop, str(fair.lottery_id))["status"]


def _audited(shop: Shop, lottery_id: str) -> list[str]:
    with shop.services.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT action FROM audit_log WHERE subject = :subject ORDER BY audit_id"),
            {"subject": f"lottery:{lottery_id}"},
        )
        return [row[0] for row in rows]
