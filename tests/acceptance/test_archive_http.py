"""Archived coupons over HTTP: readable for ever, of a template that does not open again (API.md)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from coupon_workers.claiming.gate_retirement import retire_gates
from coupon_workers.coupons.archive import archive_coupons
from coupon_workers.coupons.expiry import expire_coupons
from tests.support.http_caller import claim_of
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop

YEARS = timedelta(days=800)


@pytest.fixture
def template_id(shop: Shop) -> str:
    """A template of years ago with the coupon of ann; everybody at the shop has aged since."""
    opened = shop.desk.open(per_user_limit=1)
    shop.front.claimed(opened, "ann")
    shop.settle(opened)
    with shop.services.engine.begin() as connection:
        for statement in AGE:
            connection.execute(text(statement), {"years": YEARS})
    retire_gates(shop.services)
    return opened


AGE = (
    "UPDATE coupon_template SET claim_start = claim_start - :years, claim_end = claim_end - :years,"
    " updated_at = updated_at - :years",
    "UPDATE coupon SET valid_from = valid_from - :years, valid_to = valid_to - :years,"
    " claimed_at = claimed_at - :years, issued_at = issued_at - :years, updated_at = updated_at - :years",
    "UPDATE coupon_flow SET at = at - :years",
)


def _archive(shop: Shop) -> int:
    """End what has ended, as long ago as it did, and play the archiver."""
    now = datetime.now(UTC)
    expire_coupons(replace(shop.services), now - YEARS + timedelta(days=8))
    return archive_coupons(shop.services, now)


def test_a_claim_and_its_coupon_are_read_as_before(shop: Shop, template_id: str) -> None:
    """By the claim's number, by the coupon's with its history, by the request that is sent again; not in the list."""
    [before] = shop.front.wallet("ann").ok()["items"]
    coupon_no = before["coupon_no"]
    claim = shop.front.read_claim(coupon_no).ok()

    assert 1 == _archive(shop)

    coupon = shop.front.coupon("ann", coupon_no).ok()
    assert claim == shop.front.read_claim(coupon_no).ok()
    assert before == {name: value for name, value in coupon.items() if name != "history"}
    assert ["issue", "expire"] == [step["action"] for step in coupon["history"]]
    assert coupon_no == shop.front.claim(template_id, "ann").json["claim_id"]
    assert [coupon_no] == [
        result["claim_id"] for result in shop.front.claim_many([claim_of(template_id, "ann")]).ok()["results"]
    ]
    shop.services.redis.flushall()
    assert [] == shop.front.wallet("ann").ok()["items"]
    shop.front.coupon("bob", coupon_no).problem(404, "COUPON_NOT_FOUND")
    shop.assert_sound()


def test_the_template_says_so_and_does_not_open_again(shop: Shop, template_id: str) -> None:
    """409 with how many there are; a clone does what is wanted."""
    _archive(shop)

    later = shop.desk.change(template_id, claim_end=from_now(days=1)).problem(409, "HAS_ARCHIVED")
    preheat = shop.desk.act(template_id, "preheat").problem(409, "HAS_ARCHIVED")

    stats = shop.desk.admin.ask("GET", f"/v1/templates/{template_id}/stats").ok()
    assert (1, 1) == (later["archived"], preheat["archived"])
    assert (1, 1, 0) == (stats["issued"], stats["archived"], stats["by_status"]["expired"])
    assert 1 == shop.desk.stock(template_id)["issued"]
    shop.desk.change(template_id, name="Long ago").ok()
    shop.desk.act(template_id, "clone").ok(201)
