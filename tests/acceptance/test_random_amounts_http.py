"""Random amounts over HTTP: from the draft of a pool to what a coupon takes off an order."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.gift import at_once
from tests.support.http_desk import template_body
from tests.support.http_shop import Shop
from tests.support.order_http import OrderCentre

POOL: dict[str, Any] = {"min": 100, "max": 900, "budget": 5_000, "distribution": "uniform"}
TIERS = [{"min": 100, "max": 200, "weight": 8}, {"min": 1_000, "max": 3_000, "weight": 2}]
RANDOM: dict[str, Any] = {"type": "random_amount", "amount": None, "pool": POOL}


def claimed(shop: Shop, template_id: str, *users: str) -> dict[str, dict[str, Any]]:
    """A coupon for each user, as his wallet shows it."""
    claims = {user: shop.front.claim(template_id, user, "r1").ok(202)["claim_id"] for user in users}
    shop.settle(template_id)
    return {user: shop.front.coupon(user, claim_id).ok() for user, claim_id in claims.items()}


@pytest.mark.parametrize(
    "pool",
    [
        POOL,
        POOL | {"distribution": "normal"},
        {"min": 100, "max": 3_000, "budget": 4_000, "distribution": "tiered", "tiers": TIERS},
    ],
)
def test_every_coupon_is_worth_a_value_of_the_pool_and_all_of_them_the_budget(shop: Shop, pool: dict[str, Any]) -> None:
    """The wallet shows it, as soon as the coupon is there."""
    template_id = shop.desk.open(**RANDOM | {"pool": pool})

    wallets = claimed(shop, template_id, *(f"u{number}" for number in range(10)))

    amounts = [coupon["amount"] for coupon in wallets.values()]
    assert pool["budget"] == sum(amounts)
    assert all(pool["min"] <= amount <= pool["max"] for amount in amounts)
    assert {("random_amount", "CNY")} == {(coupon["type"], coupon["currency"]) for coupon in wallets.values()}
    assert 2 == sum(amount >= 1_000 for amount in amounts) or pool["distribution"] != "tiered"
    shop.front.claim(template_id, "late", "r1").problem(409, "SOLD_OUT")
    shop.assert_sound()


def test_an_order_is_less_by_what_the_coupon_drew(shop: Shop) -> None:
    """Quote, lock, payment and return."""
    centre = OrderCentre(shop)
    template_id = shop.desk.open(**RANDOM)
    coupon = claimed(shop, template_id, "ann")["ann"]

    quote = centre.quote().ok()
    lock = centre.lock("o1", [coupon["coupon_no"]]).ok()
    paid = centre.redeem("o1").ok()
    refund = centre.refund("o1", "ref-1", full=True).ok()

    assert [(coupon["coupon_no"], coupon["amount"])] == [(a["coupon_no"], a["discount"]) for a in quote["applied"]]
    assert quote["applied"] == lock["applied"] == paid["applied"]
    assert coupon["amount"] == lock["discount"] == refund["discount_reversed"]
    assert lock["subtotal"] - coupon["amount"] == lock["payable"]
    shop.assert_sound()


def test_a_given_coupon_keeps_its_amount(shop: Shop) -> None:
    """The pool has issued it once."""
    template_id = shop.desk.open(**RANDOM, transferable=True)
    coupon = claimed(shop, template_id, "ann")["ann"]

    given = shop.front.ask(
        "POST",
        f"/v1/users/ann/coupons/{coupon['coupon_no']}/transfer",
        {"to_user_id": "bob"},
        Idempotency_Key="k1",
    ).ok(201)

    assert coupon["amount"] == shop.front.coupon("bob", given["coupon_no"]).ok()["amount"]
    shop.assert_sound()


def test_a_crowd_at_the_gate_draws_exactly_the_pool(shop: Shop) -> None:
    """Forty at once for ten coupons."""
    template_id = shop.desk.open(**RANDOM)

    def claim(number: int) -> int:
        return shop.front.claim(template_id, f"u{number}", "r1").status

    statuses = Counter(at_once(*(lambda number=number: claim(number) for number in range(40))))
    shop.settle(template_id)

    assert {202: 10, 409: 30} == statuses
    shop.assert_sound()


def test_a_published_pool_keeps_its_budget_and_its_total(shop: Shop) -> None:
    """The values have been shared out; the name may change."""
    template_id = shop.desk.open(**RANDOM)

    refused = shop.desk.change(template_id, total_quantity=11).problem(409, "NOT_PATCHABLE")
    shop.desk.change(template_id, pool=POOL | {"budget": 5_001}).problem(409, "NOT_PATCHABLE")
    renamed = shop.desk.change(template_id, name="another").ok()

    assert ["total_quantity"] == refused["fields"]
    assert ("another", 10, POOL | {"tiers": None}) == tuple(
        renamed[field] for field in ("name", "total_quantity", "pool")
    )
    shop.assert_sound()


def test_a_draft_s_pool_may_change_and_a_clone_has_a_pool_of_its_own(shop: Shop) -> None:
    """Values are shared out when a template is published."""
    template_id = shop.desk.draft(**RANDOM)
    shop.desk.change(template_id, total_quantity=5, pool=POOL | {"budget": 2_000}).ok()
    shop.desk.act(template_id, "publish").ok()
    clone = shop.desk.act(template_id, "clone").ok(201)["template_id"]
    shop.desk.act(clone, "publish").ok()

    wallets = [claimed(shop, each, *(f"u{number}" for number in range(5))) for each in (template_id, clone)]

    assert [2_000, 2_000] == [sum(coupon["amount"] for coupon in wallet.values()) for wallet in wallets]
    shop.assert_sound()


def test_publishing_twice_shares_out_once(shop: Shop) -> None:
    """The second is told that it is published, and the values are as they were."""
    template_id = shop.desk.open(**RANDOM)
    coupon = claimed(shop, template_id, "ann")["ann"]

    shop.desk.act(template_id, "publish")

    assert coupon["amount"] == shop.front.coupon("ann", coupon["coupon_no"]).ok()["amount"]
    shop.assert_sound()


BAD_POOLS: list[tuple[str, Any]] = [
    ("pool", None),
    ("pool", 5_000),
    ("pool.min", POOL | {"min": 0}),
    ("pool.min", POOL | {"min": 1.0}),
    ("pool.min", POOL | {"min": "100"}),
    ("pool.min", POOL | {"min": True}),
    ("pool.max", POOL | {"max": 2**53}),
    ("pool.max", POOL | {"max": 99}),
    ("pool.budget", POOL | {"budget": 999}),
    ("pool.budget", POOL | {"budget": 9_001}),
    ("pool.budget", {name: value for name, value in POOL.items() if name != "budget"}),
    ("pool.distribution", POOL | {"distribution": "fair"}),
    ("pool.seed", POOL | {"seed": 1}),
    ("pool.tiers", POOL | {"distribution": "tiered"}),
    ("pool.tiers", POOL | {"tiers": [{"min": 100, "max": 900, "weight": 1}]}),
    ("pool.tiers.1.max", POOL | {"distribution": "tiered", "tiers": TIERS}),
    ("pool.tiers.0.weight", POOL | {"distribution": "tiered", "tiers": [{"min": 100, "max": 900}]}),
    ("pool.tiers.0.colour", POOL | {"distribution": "tiered", "tiers": [TIERS[0] | {"colour": "red"}]}),
]


@pytest.mark.parametrize(("field", "pool"), BAD_POOLS)
def test_a_pool_that_cannot_be_shared_out_is_refused_by_field(shop: Shop, field: str, pool: Any) -> None:
    """No budget is bent to fit, and nothing is stored."""
    refused = shop.desk.admin.ask("POST", "/v1/templates", template_body(**RANDOM | {"pool": pool}))

    assert [field] == refused.bad_fields()
    assert [] == shop.desk.admin.ask("GET", "/v1/templates").ok()["items"]


def test_more_values_than_a_pool_may_have_are_refused(shop: Shop) -> None:
    """And so is taking one back that was drawn."""
    body = template_body(**RANDOM, restock_on_revoke=True) | {"total_quantity": 1_000_001}

    refused = shop.desk.admin.ask("POST", "/v1/templates", body)

    assert ["pool.budget", "restock_on_revoke", "total_quantity"] == refused.bad_fields()


def test_a_batch_of_random_amounts_is_refused(shop: Shop) -> None:
    """An audience draws nothing: a refusal, not a coupon of no worth."""
    template_id = shop.desk.open(**RANDOM)

    body = {"template_id": template_id, "name": "b", "tags": "vip"}
    shop.desk.admin.ask("POST", "/v1/batches", body, Idempotency_Key="k1").problem(409, "TYPE_NOT_OFFERED")
    shop.assert_sound()
