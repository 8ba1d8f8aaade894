"""A lottery changed in the console: what is wrong is told at its field, and two tabs do not undo one another."""

from __future__ import annotations

import re

import pytest

from tests.support.console_visitor import Visitor
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from tests.support.lottery import FIRST, Fair, coupon_prize, open_lottery, thanks


@pytest.fixture
def fair(shop: Shop) -> Fair:
    """A paused lottery of four coupons of which one is drawn."""
    template_id = int(shop.desk.open(total_quantity=10, claim_start=from_now(hours=-1)))
    made = open_lottery(shop.services, [coupon_prize(template_id, 4, 500_000), thanks(500_000)])
    made.draw("ann", number=FIRST)
    made.pause()
    return made


def _fields(zoe: Visitor, fair: Fair, **changed: str) -> dict[str, str]:
    """The form as it is loaded, with changes."""
    page = zoe.page(f"/lotteries/{fair.lottery_id}/edit")
    found = re.findall(r'name="(version|name|prizes\.\d\.\w+)"[^>]* value="([^"]*)"', page)
    assert 6 == len(found)
    return dict(found) | {name.replace("__", "."): value for name, value in changed.items()}


def test_weights_and_stock_are_changed(shop: Shop, zoe: Visitor, fair: Fair) -> None:
    """The books, the gate and the log have it; sent twice it is one change."""
    fields = _fields(zoe, fair, prizes__0__weight="1", prizes__1__weight="999999", prizes__0__stock="9", name="Other")

    leads = {zoe.done(f"/lotteries/{fair.lottery_id}/edit", **fields) for _ in range(2)}

    assert {f"/console/lotteries/{fair.lottery_id}?done=lottery_changed"} == leads
    assert ([1, 999_999], [9, 1_000_000], "Other") == (fair.prizes("weight"), fair.prizes("stock"), fair.books["name"])
    assert 8 == fair.stock[0]
    assert ["lottery.create", "lottery.pause", "lottery.change"] == [
        each["action"]
        for each in reversed(shop.desk.admin.ask("GET", "/v1/audit-log").ok()["items"])
        if each["subject"] == f"lottery:{fair.lottery_id}"
    ]
    fair.drain()
    shop.assert_sound()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"prizes__0__weight": "0"}, "500,000 are missing"),
        ({"prizes__0__weight": "500001"}, "1 are too many"),
        ({"prizes__0__weight": "-1"}, "Write a whole number"),
        ({"prizes__0__weight": "1.5"}, "Write a whole number"),
        ({"prizes__0__weight": ""}, "Fill this in."),
        ({"prizes__0__weight": "9999999"}, "This is too large."),
        ({"prizes__0__stock": "0"}, "This is too small."),
        ({"prizes__0__stock": ""}, "Fill this in."),
        ({"prizes__0__stock": "11"}, "has not so many units left"),
        ({"name": ""}, "Fill this in."),
        ({"version": "soon"}, "Write a whole number"),
        ({"prizes__9__weight": "0", "prizes__9__stock": "1"}, "Fill this in."),
    ],
)
def test_what_is_wrong_is_told(zoe: Visitor, fair: Fair, changed: dict[str, str], told: str) -> None:
    """And nothing is changed."""
    before = fair.gate(), fair.books

    answer = zoe.post(f"/lotteries/{fair.lottery_id}/edit", **_fields(zoe, fair, **changed))

    assert 422 == answer.status_code and told in answer.text
    assert before == (fair.gate(), fair.books)


def test_stock_below_what_is_drawn_is_told_with_its_number(zoe: Visitor, fair: Fair) -> None:
    """Queued draws count."""
    fair.services.redis.hset(fair.keys.meta, "status", "open")
    fair.draw("ben", number=FIRST)

    answer = zoe.post(f"/lotteries/{fair.lottery_id}/edit", **_fields(zoe, fair, prizes__0__stock="1"))

    assert 422 == answer.status_code and "2 of it are drawn already." in answer.text


def test_who_is_slower_is_told_and_keeps_what_he_typed(zoe: Visitor, fair: Fair) -> None:
    """Also when it has ended meanwhile; a lottery that runs has no such page."""
    address = f"/lotteries/{fair.lottery_id}/edit"
    mine, other = _fields(zoe, fair, prizes__0__stock="7"), _fields(zoe, fair, prizes__0__stock="8")
    zoe.done(address, **other)

    slower = zoe.post(address, **mine)
    zoe.done(f"/lotteries/{fair.lottery_id}/act", act="resume")
    running = zoe.post(address, **mine)

    assert 409 == slower.status_code and "Somebody else changed it" in slower.text and 'value="7"' in slower.text
    assert 409 == running.status_code and "In its present status" in running.text
    assert 409 == zoe.get(address).status_code
    assert 8 == fair.prizes("stock")[0]
