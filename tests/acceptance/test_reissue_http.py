"""Coupons that an operator gives by hand, and locks that he frees, over HTTP: once, with a reason, in all books."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.reconciliation.kind import ReconKind
from tests.support.http_desk import from_now
from tests.support.http_reply import Reply
from tests.support.http_shop import Shop
from tests.support.order_http import OrderCentre
from tests.support.reconciling import ReconDesk

REASON = {"reason": "the parcel was lost"}


def reissue(shop: Shop, template_id: str, request: str = "ticket-1", user: str = "ann", **more: Any) -> Reply:
    """``POST /v1/users/{user}/coupons``."""
    body = {"template_id": template_id, "request_id": request} | REASON | more
    return shop.desk.admin.ask("POST", f"/v1/users/{user}/coupons", body)


def unlock(shop: Shop, coupon_no: str, user: str = "ann", **more: Any) -> Reply:
    """``POST /v1/users/{user}/coupons/{coupon_no}/unlock``."""
    return shop.desk.admin.ask("POST", f"/v1/users/{user}/coupons/{coupon_no}/unlock", REASON | more)


def claimed(shop: Shop, template_id: str, user: str = "ann", request: str = "r1") -> str:
    """A coupon that was claimed; its number."""
    coupon_no = shop.front.claimed(template_id, user, request)
    shop.settle(template_id)
    return coupon_no


def audited(shop: Shop) -> list[tuple[str, Any]]:
    """Subject and facts of what was done to coupons."""
    rows = shop.desk.admin.ask("GET", "/v1/audit-log").ok()["items"]
    return [(row["subject"], row["after"]) for row in rows if row["action"].startswith("coupon.")]


def sound(shop: Shop) -> None:
    """The checker has no complaint, and reconciliation finds nothing, also after a rebuild of every gate."""
    shop.assert_sound()
    for template in shop.desk.admin.ask("GET", "/v1/templates").ok()["items"]:
        if template["stock"]["warmed"]:
            shop.desk.act(template["template_id"], "preheat").ok()
    shop.assert_sound()
    desk = ReconDesk(shop.services, shop.services.clock() + timedelta(minutes=1))
    assert [] == [
        each for kind in (ReconKind.STOCK, ReconKind.STATE, ReconKind.BATCHES) for each in desk.reconcile(kind)
    ]


def test_a_coupon_is_given_by_hand(shop: Shop) -> None:
    """It takes a unit, is in the wallet at once, and the log and its history say who gave it and why."""
    template_id = shop.desk.open(total_quantity=3, per_user_limit=1)
    claimed(shop, template_id)
    shop.front.wallet("ann").ok()

    coupon = reissue(shop, template_id).ok(201)

    assert ("manual", "unused", "ann") == tuple(coupon[name] for name in ("source", "status", "user_id"))
    assert coupon == shop.front.wallet("ann").ok()["items"][0]
    [step] = shop.front.coupon("ann", coupon["coupon_no"]).ok()["history"]
    assert ("issue", "ticket-1") == (step["action"], step["request_id"])
    facts = {"user_id": "ann", "template_id": template_id, "in_place_of": None, "request": "ticket-1"} | REASON
    assert [(f"coupon:{coupon['coupon_no']}", facts)] == audited(shop)
    assert (2, 1) == tuple(shop.desk.stock(template_id)[name] for name in ("issued", "remaining"))
    sound(shop)


def test_no_limit_counts_it(shop: Shop) -> None:
    """Neither when it is given, nor when its owner claims afterwards, also after a rebuild of the gate."""
    template_id = shop.desk.open(total_quantity=9, per_user_limit=1, per_user_daily_limit=1)
    for request in ("t-1", "t-2"):
        reissue(shop, template_id, request).ok(201)
    shop.desk.act(template_id, "preheat").ok()

    claimed(shop, template_id)
    reissue(shop, template_id, "t-3").ok(201)

    shop.front.claim(template_id, "ann", "r2").problem(409, "LIMIT_REACHED")
    assert ["claimed"] == [offer["state"] for offer in shop.front.center("ann").ok()["items"]]
    assert 1 == shop.front.center("ann").ok()["items"][0]["claimed"]
    sound(shop)


def test_a_request_has_one_coupon_for_good(shop: Shop) -> None:
    """At the same moment, again, and never another; of each user."""
    template_id, other = shop.desk.open(total_quantity=9), shop.desk.open()
    with ThreadPoolExecutor(6) as threads:
        replies = list(threads.map(lambda _: reissue(shop, template_id), range(6)))

    assert [200] * 5 + [201] == sorted(reply.status for reply in replies)
    assert 1 == len({reply.json["coupon_no"] for reply in replies})
    reissue(shop, other).problem(409, "REQUEST_REUSED")
    reissue(shop, template_id, user="bob").ok(201)
    assert 2 == len(audited(shop))
    assert 2 == shop.desk.stock(template_id)["issued"]
    sound(shop)


@pytest.mark.parametrize("restock", [True, False])
def test_a_coupon_takes_the_place_of_another(shop: Shop, restock: bool) -> None:
    """The old one is revoked, its unit goes back where the template says so, and it is replaced once."""
    template_id = shop.desk.open(total_quantity=2, restock_on_revoke=restock)
    old = claimed(shop, template_id)
    shop.front.wallet("ann").ok()

    new = reissue(shop, template_id, in_place_of=old).ok(201)["coupon_no"]

    wallet = {coupon["coupon_no"]: coupon["status"] for coupon in shop.front.wallet("ann").ok()["items"]}
    assert {old: "revoked", new: "unused"} == wallet
    again = reissue(shop, template_id, "ticket-2", in_place_of=old).problem(409, "ALREADY_REPLACED")
    assert new == again["coupon_no"]
    assert new == reissue(shop, template_id, in_place_of=old).ok()["coupon_no"]
    assert int(restock) == shop.desk.stock(template_id)["remaining"]
    sound(shop)


def test_the_last_unit_comes_from_the_coupon_that_is_replaced(shop: Shop) -> None:
    """Nothing is left but what goes back with it; without that nothing happens at all."""
    back, gone = (shop.desk.open(total_quantity=1, restock_on_revoke=restock) for restock in (True, False))
    old, kept = claimed(shop, back), claimed(shop, gone)

    reissue(shop, back, in_place_of=old).ok(201)
    reissue(shop, gone, "ticket-2", in_place_of=kept).problem(409, "SOLD_OUT")

    assert "unused" == shop.front.coupon("ann", kept).ok()["status"]
    shop.front.claim(back, "bob").problem(409, "SOLD_OUT")
    sound(shop)


def test_what_is_on_an_order_or_was_given_away_is_not_replaced(shop: Shop) -> None:
    """Nor what another user has; what has expired is."""
    template_id = shop.desk.open(total_quantity=9, transferable=True)
    locked, given, bobs, old, paid = (
        claimed(shop, template_id, user, f"r-{n}") for n, user in enumerate(["ann", "ann", "bob", "ann", "ann"])
    )
    centre = OrderCentre(shop)
    centre.lock("o1", [locked]).ok()
    centre.lock("o2", [paid]).ok()
    centre.redeem("o2").ok()
    shop.front.ask("POST", f"/v1/users/ann/coupons/{given}/transfer", {"to_user_id": "eve"}).ok(201)
    with shop.services.engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE coupon SET valid_from = now() - interval '2 days', valid_to = now() - interval '1 day'"
                " WHERE coupon_id = :id"
            ),
            {"id": int(old)},
        )

    held = reissue(shop, template_id, in_place_of=locked).problem(409, "COUPON_NOT_AVAILABLE")
    assert ("locked", "o1") == (held["coupon_status"], held["order_no"])
    for number, status in ((given, "transferred"), (paid, "redeemed")):
        gone = reissue(shop, template_id, in_place_of=number).problem(409, "COUPON_NOT_AVAILABLE")
        assert status == gone["coupon_status"]
    reissue(shop, template_id, in_place_of=bobs).problem(404, "COUPON_NOT_FOUND")
    reissue(shop, template_id, in_place_of=old).ok(201)
    assert "expired" == shop.front.coupon("ann", old).ok()["status"]


def test_what_cannot_be_given_is_refused_precisely(shop: Shop) -> None:
    """Each by its reason, and nothing is written."""
    pool = {"min": 100, "max": 300, "budget": 1_000, "distribution": "uniform"}
    drawn = shop.desk.open(type="random_amount", amount=None, pool=pool, total_quantity=5)
    sold_out, paused, offline = shop.desk.open(total_quantity=1), shop.desk.open(), shop.desk.open()
    past = {"mode": "fixed", "from": from_now(days=-9), "to": from_now(days=-8)}
    over = shop.desk.open(claim_start=from_now(days=-9), claim_end=from_now(days=-8, hours=-1), validity=past)
    claimed(shop, sold_out, "bob")
    shop.desk.act(paused, "pause").ok()
    shop.desk.act(offline, "offline").ok()
    before = shop.holdings()[1]

    for template_id, status, code in (
        (drawn, 409, "TYPE_NOT_OFFERED"),
        (sold_out, 409, "SOLD_OUT"),
        (paused, 409, "PAUSED"),
        (offline, 409, "INVALID_STATUS"),
        (shop.desk.draft(), 409, "INVALID_STATUS"),
        (over, 409, "EXPIRED"),
        ("7", 404, "TEMPLATE_NOT_FOUND"),
    ):
        reissue(shop, template_id).problem(status, code)
    after = shop.holdings()[1]

    assert {"coupon", "coupon_flow", "outbox"}.isdisjoint({name for name in after if after[name] != before[name]})


def test_a_coupon_above_the_budget_is_not_given_by_one(shop: Shop) -> None:
    """A batch is, by two."""
    budgeted = Shop(replace(shop.services, settings=shop.services.settings), approval_budgets='{"CNY": 1000}')
    template_id = shop.desk.open()

    reissue(budgeted, template_id).problem(409, "ABOVE_BUDGET")


def test_a_coupon_is_given_after_claiming_has_ended(shop: Shop) -> None:
    """Complaints come late."""
    template_id = shop.desk.open(claim_start=from_now(hours=-2), claim_end=from_now(hours=-1))

    reissue(shop, template_id).ok(201)

    sound(shop)


def test_a_bad_wish_is_refused_by_its_field(shop: Shop) -> None:
    """And only an administrator has wishes."""
    wish = {"template_id": shop.desk.open(), "request_id": "ticket-1"} | REASON

    for changed, field in (
        ({"reason": " "}, "reason"),
        ({"request_id": "a b"}, "request_id"),
        ({"template_id": "x"}, "template_id"),
        ({"in_place_of": "-1"}, "in_place_of"),
        ({"colour": "red"}, "colour"),
    ):
        assert [field] == shop.desk.admin.ask("POST", "/v1/users/ann/coupons", wish | changed).bad_fields()
    shop.front.ask("POST", "/v1/users/ann/coupons", {}).problem(403, "FORBIDDEN")


def test_a_lock_that_stands_is_freed_by_force_alone(shop: Shop) -> None:
    """Its order lets go of all it holds; a payment that comes after all locks anew, or hears that it came too late."""
    centre = OrderCentre(shop)
    template_id = shop.desk.open(total_quantity=9)
    first, second = (claimed(shop, template_id, "ann", request) for request in ("r1", "r2"))
    centre.lock("o1", [first]).ok()
    centre.lock("o2", [second]).ok()

    stands = unlock(shop, first).problem(409, "LOCK_STANDS")
    assert "o1" == stands["order_no"]
    freed = unlock(shop, first, force=True).ok()
    assert ("unused", "release") == (freed["status"], freed["history"][-1]["action"])
    assert freed == unlock(shop, first, force=True).ok()
    unlock(shop, second, force=True).ok()
    centre.lock("o3", [first]).ok()

    late = centre.redeem("o1").problem(409, "LOCK_EXPIRED")
    assert "o3" == late["order_no"]
    assert "redeemed" == centre.redeem("o2", "pay-2").ok()["status"]
    unlock(shop, second, force=True).problem(409, "COUPON_NOT_AVAILABLE")
    unlock(shop, "7").problem(404, "COUPON_NOT_FOUND")
    said = [facts for _, facts in audited(shop)]
    expected = [{"user_id": "ann", "order_no": order, "force": True} | REASON for order in ("o2", "o1")]
    assert expected == said
    sound(shop)


@pytest.mark.parametrize("over", ["run out", "closed"])
def test_a_lock_that_is_over_is_freed_without_force(shop: Shop, over: str) -> None:
    """Its deadline has passed and no sweep came by; or the order centre has closed the order, and nobody listened."""
    centre = OrderCentre(shop)
    coupon_no = centre.coupon()
    centre.lock("o1", [coupon_no]).ok()
    with shop.services.engine.begin() as connection:
        if over == "run out":
            connection.execute(
                text("UPDATE coupon_order SET locked_at = now() - interval '1 hour', locked_until = now()")
            )
        else:
            connection.execute(
                text(
                    "INSERT INTO order_event (user_id, event_id, order_no, type, occurred_at, body, fingerprint, state,"
                    " received_at, tried_at)"
                    " VALUES ('ann', 'e1', 'o1', 'closed', now(), '{}', '', 'waiting', now(), now())"
                )
            )

    assert "unused" == unlock(shop, coupon_no).ok()["status"]


def test_a_lock_that_no_order_knows_is_left_to_reconciliation(shop: Shop) -> None:
    """Whatever broke it, it is looked at first."""
    centre = OrderCentre(shop)
    coupon_no = centre.coupon()
    centre.lock("o1", [coupon_no]).ok()
    with shop.services.engine.begin() as connection:
        connection.execute(
            text("UPDATE coupon_order SET status = 'released', released_at = now(), release_reason = 'x'")
        )

    broken = unlock(shop, coupon_no, force=True).problem(409, "LOCK_BROKEN")

    assert "o1" == broken["order_no"]
