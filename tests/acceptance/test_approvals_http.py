"""Approval and recalls over HTTP (API.md, Templates), good and bad."""

from __future__ import annotations

from typing import Any

import pytest

from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.coupons.revocation import perform_revocation
from coupon_workers.runtime.services import Services
from tests.support.batch_desk import BatchDesk
from tests.support.http_caller import Caller
from tests.support.http_shop import Shop


@pytest.fixture
def shop(services: Services) -> Shop:
    """A template of more than 200.00 CNY is decided by two: one of eleven coupons."""
    return Shop(services, claim_rate=0, approval_budgets='{"CNY": 20000}')


@pytest.fixture
def boss(shop: Shop) -> Caller:
    """The second person."""
    return shop.caller("admin")


def _inbox(reader: Caller) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = reader.ask("GET", "/v1/approvals?state=pending").ok()["items"]
    return items


def test_a_costly_template_is_published_by_two(shop: Shop, boss: Caller) -> None:
    """Whatever it says of itself; it is in the lists of both, and then open."""
    template_id = shop.desk.draft(total_quantity=11, approval_required=False)

    handed_in = shop.desk.act(template_id, "publish").ok()
    waiting = boss.ask("GET", "/v1/templates?status=pending_approval").ok()["items"]
    [request] = _inbox(boss)
    own = shop.desk.admin.ask("POST", f"/v1/templates/{template_id}/approve", {})
    approved = boss.ask("POST", f"/v1/templates/{template_id}/approve", {"approval_id": request["approval_id"]}).ok()

    assert ("pending_approval", [template_id]) == (handed_in["status"], [each["template_id"] for each in waiting])
    assert (template_id, "publication", ["budget"], [], 0, 22_000, 20_000) == tuple(
        request[name] for name in ("template_id", "kind", "reasons", "changes", "cost_before", "cost_after", "budget")
    )
    assert "created the template and asked for it" in own.problem(409, "OWN_TEMPLATE")["detail"]
    assert ("active", True) == (approved["status"], approved["stock"]["warmed"])
    shop.front.claim(template_id, "ann").ok(202)
    assert [] == _inbox(boss)


def test_an_approval_may_come_without_a_body(shop: Shop, boss: Caller) -> None:
    """All of it may be left out, and so may it; a rejection is told what it lacks."""
    template_id = shop.desk.open(total_quantity=11)

    assert ["comment"] == boss.ask("POST", f"/v1/templates/{template_id}/reject").bad_fields()
    assert "active" == boss.ask("POST", f"/v1/templates/{template_id}/approve").ok()["status"]


def test_a_rejection_says_why(shop: Shop, boss: Caller) -> None:
    """It must; and the maker reads it."""
    template_id = shop.desk.open(total_quantity=11)
    address = f"/v1/templates/{template_id}/reject"

    assert ["comment"] == boss.ask("POST", address, {}).bad_fields()
    assert ["comment"] == boss.ask("POST", address, {"comment": "  "}).bad_fields()
    assert "draft" == boss.ask("POST", address, {"comment": "too dear"}).ok()["status"]

    [request] = shop.desk.admin.ask("GET", f"/v1/approvals?template_id={template_id}").ok()["items"]
    assert ("rejected", "too dear") == (request["state"], request["comment"])
    boss.ask("POST", address, {"comment": "again"}).ok()
    assert (
        "rejected"
        == boss.ask("POST", address.replace("reject", "approve"), {}).problem(409, "NOTHING_PENDING")["state"]
    )


def test_a_raise_is_answered_202_and_changes_nothing_yet(shop: Shop, boss: Caller) -> None:
    """What costs nothing is 200; the answer of a GET may be sent back meanwhile."""
    template_id = shop.desk.open()

    asked = shop.desk.change(template_id, total_quantity=50).ok(202)
    stored = boss.ask("GET", f"/v1/templates/{template_id}").ok()
    sent_back = boss.ask("PATCH", f"/v1/templates/{template_id}", stored).ok()
    renamed = shop.desk.change(template_id, name="other").ok()
    other = shop.desk.change(template_id, total_quantity=60).problem(409, "CHANGE_PENDING")
    approved = boss.ask("POST", f"/v1/templates/{template_id}/approve", {"comment": "good"})

    assert [{"field": "total_quantity", "before": 10, "after": 50}] == asked["changes"]
    assert (20_000, 100_000) == (asked["cost_before"], asked["cost_after"])
    assert (10, 10, 10) == tuple(each["total_quantity"] for each in (stored, sent_back, renamed))
    assert asked["approval_id"] == other["approval_id"]
    assert (50, 50) == (approved.ok()["total_quantity"], approved.json["stock"]["remaining"])


def test_a_request_is_withdrawn_by_whoever_asked(shop: Shop, boss: Caller) -> None:
    """A change and a publication."""
    changing, publishing = shop.desk.open(), shop.desk.open(total_quantity=11)
    shop.desk.change(changing, total_quantity=50).ok(202)

    withdrawn = [
        shop.desk.admin.ask("POST", f"/v1/templates/{template_id}/withdraw", {}).ok()["status"]
        for template_id in (changing, publishing)
    ]

    assert (["active", "draft"], []) == (withdrawn, _inbox(boss))
    boss.ask("POST", f"/v1/templates/{changing}/approve", {}).problem(409, "NOTHING_PENDING")


@pytest.mark.parametrize("action", ["approve", "reject", "withdraw"])
def test_bad_decisions_are_told_precisely(shop: Shop, boss: Caller, action: str) -> None:
    """Unknown templates, fields, numbers and scopes."""
    body = {"comment": "x"}
    address = f"/v1/templates/{shop.desk.draft()}/{action}"

    boss.ask("POST", f"/v1/templates/1/{action}", body).problem(404, "TEMPLATE_NOT_FOUND")
    boss.ask("POST", f"/v1/templates/x/{action}", body).problem(404, "TEMPLATE_NOT_FOUND")
    boss.ask("POST", address, body).problem(409, "NOTHING_PENDING")
    assert ["extra"] == boss.ask("POST", address, {**body, "extra": 1}).bad_fields()
    assert ["approval_id"] == boss.ask("POST", address, {**body, "approval_id": "x"}).bad_fields()
    shop.front.ask("POST", address, body).problem(403, "FORBIDDEN")
    assert ["state"] == boss.ask("GET", "/v1/approvals?state=maybe").bad_fields()


def test_requests_are_listed_in_pages(shop: Shop, boss: Caller) -> None:
    """Newest first, none twice."""
    made = [shop.desk.open(total_quantity=11) for _ in range(3)]

    first = boss.ask("GET", "/v1/approvals?limit=2").ok()
    second = boss.ask("GET", f"/v1/approvals?limit=2&cursor={first['next_cursor']}").ok()

    assert made[::-1] == [each["template_id"] for each in [*first["items"], *second["items"]]]
    assert None is second["next_cursor"]


@pytest.mark.parametrize(("users", "needed"), [(1, False), (2, True)])
def test_a_batch_above_the_budget_waits_for_another_key(
    shop: Shop, services: Services, boss: Caller, users: int, needed: bool
) -> None:
    """By what its users may cost, whatever their number."""
    template_id = shop.desk.open(amount=12_000, threshold=20_000, total_quantity=5)
    boss.ask("POST", f"/v1/templates/{template_id}/approve", {}).ok()
    desk = BatchDesk(shop.desk.admin)
    batch_no = desk.made(template_id, *(f"u{number}" for number in range(users)))

    stage_batch(shop.services, int(batch_no))

    assert needed is desk.read(batch_no)["needs_approval"]


def test_a_recall_is_asked_for_and_watched(shop: Shop) -> None:
    """Asked again while it runs, it is the same one; the stock is back, and the history tells."""
    template_id = shop.desk.open(total_quantity=2, restock_on_revoke=True)
    for user in ("ann", "bob"):
        shop.front.claim(template_id, user).ok(202)
    shop.settle(template_id)
    address = f"/v1/templates/{template_id}/revoke"

    asked = shop.desk.admin.ask("POST", address, {"reason": "wrong amount"}).ok(202)
    again = shop.desk.admin.ask("POST", address, {"reason": "really"}).ok(202)
    perform_revocation(shop.services, int(asked["revocation_id"]))
    done = shop.desk.admin.ask("GET", f"/v1/templates/{template_id}/revocations/{asked['revocation_id']}").ok()

    assert ("running", asked["revocation_id"]) == (asked["status"], again["revocation_id"])
    assert ("done", 2, 2, 0, "wrong amount") == tuple(
        done[name] for name in ("status", "revoked", "restocked", "locked", "reason")
    )
    assert (2, 0) == (shop.desk.stock(template_id)["remaining"], shop.desk.stock(template_id)["issued"])
    stats = shop.desk.admin.ask("GET", f"/v1/templates/{template_id}/stats").ok()
    assert (2, 2) == (stats["issued"], stats["by_status"]["revoked"])
    [coupon] = shop.front.ask("GET", "/v1/users/ann/coupons").ok()["items"]
    history = shop.front.ask("GET", f"/v1/users/ann/coupons/{coupon['coupon_no']}").ok()["history"]
    assert ("revoked", ["issue", "revoke"]) == (coupon["status"], [step["action"] for step in history])
    shop.assert_sound()


def test_one_coupon_is_revoked_with_a_reason(shop: Shop) -> None:
    """Twice is once; a storefront may not."""
    template_id = shop.desk.open(total_quantity=1, restock_on_revoke=True)
    coupon_no = shop.front.claim(template_id, "ann").ok(202)["claim_id"]
    shop.settle(template_id)
    address = f"/v1/users/ann/coupons/{coupon_no}/revoke"

    shop.front.ask("POST", address, {"reason": "x"}).problem(403, "FORBIDDEN")
    assert ["reason"] == shop.desk.admin.ask("POST", address, {}).bad_fields()
    shop.desk.admin.ask("POST", address.replace("ann", "bob"), {"reason": "x"}).problem(404, "COUPON_NOT_FOUND")
    first, second = (shop.desk.admin.ask("POST", address, {"reason": "fraud"}).ok() for _ in range(2))

    assert first == second
    assert ("revoked", 1) == (first["status"], shop.desk.stock(template_id)["remaining"])
    shop.assert_sound()


def test_bad_recalls_are_told_precisely(shop: Shop) -> None:
    """Unknown templates and recalls, and a recall without a reason."""
    template_id = shop.desk.open()
    admin = shop.desk.admin

    admin.ask("POST", "/v1/templates/1/revoke", {"reason": "x"}).problem(404, "TEMPLATE_NOT_FOUND")
    assert ["reason"] == admin.ask("POST", f"/v1/templates/{template_id}/revoke", {}).bad_fields()
    admin.ask("GET", f"/v1/templates/{template_id}/revocations/1").problem(404, "REVOCATION_NOT_FOUND")
    admin.ask("GET", f"/v1/templates/{template_id}/revocations/x").problem(404, "REVOCATION_NOT_FOUND")
