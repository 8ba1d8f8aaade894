"""Risk control over HTTP (docs/risk.md), good and bad."""

from __future__ import annotations

from typing import Any

import pytest

from coupon_workers.claiming.settlement import drain
from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.runtime.services import Services
from tests.support.http_caller import Caller
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop

BURST = {"name": "burst", "dimension": "device", "measure": "claims", "window_s": 60, "threshold": 2}


@pytest.fixture
def shop(services: Services) -> Shop:
    """No limit of claims in a second."""
    return Shop(services, claim_rate=0)


@pytest.fixture
def admin(shop: Shop) -> Caller:
    """An operator."""
    return shop.desk.admin


def put_policy(admin: Caller, *rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Have a policy ``doorkeeper`` in force."""
    body = {"rules": list(rules), **fields}
    return dict(admin.ask("PUT", "/v1/risk-policies/doorkeeper", body).ok())


def claim(shop: Shop, template_id: str, user: str, **fields: Any) -> Any:
    """One claim from somewhere."""
    body = {"template_id": template_id, "user_id": user, "request_id": "r1", **fields}
    return shop.front.ask("POST", "/v1/claims", body)


def test_a_device_that_claims_too_often_is_refused_by_the_rules_name(shop: Shop, admin: Caller) -> None:
    """Alone and in a batch; the log says so."""
    put_policy(admin, BURST)
    template_id = shop.desk.open(risk_policy="doorkeeper")

    for user in ("ann", "bob"):
        claim(shop, template_id, user, device_id="d1").ok(202)
    refused = claim(shop, template_id, "cid", device_id="d1").problem(403, "RISK_REJECTED")
    again = {"template_id": template_id, "user_id": "dan", "request_id": "r1", "device_id": "d1"}
    batch = shop.front.ask("POST", "/v1/claims/batch", {"claims": [again]}).ok()["results"]
    sweep_risk(shop.services)
    verdicts = admin.ask("GET", f"/v1/risk-verdicts?template_id={template_id}").ok()["items"]

    assert "burst" == refused["rule"]
    assert [(403, "RISK_REJECTED", "burst")] == [(each["status"], each["code"], each["rule"]) for each in batch]
    assert [("dan", "burst", "reject", None), ("cid", "burst", "reject", None)] == [
        (each["user_id"], each["rule"], each["verdict"], each["claim_id"]) for each in verdicts
    ]


def test_a_policy_has_versions(shop: Shop, admin: Caller) -> None:
    """The same again is none; a version that was not expected is refused."""
    first, same = put_policy(admin, BURST), put_policy(admin, BURST)
    second = put_policy(admin, BURST | {"threshold": 9})
    stale = admin.ask("PUT", "/v1/risk-policies/doorkeeper?if_version=1", {"rules": []})
    template_id = shop.desk.draft(risk_policy="doorkeeper")
    in_use = admin.ask("DELETE", "/v1/risk-policies/doorkeeper").problem(409, "POLICY_IN_USE")
    versions = admin.ask("GET", "/v1/risk-policies/doorkeeper/versions").ok()["items"]

    assert [1, 1, 2] == [each["version"] for each in (first, same, second)]
    assert 2 == stale.problem(409, "POLICY_CHANGED")["version"]
    assert [template_id] == in_use["template_ids"]
    assert [9, 2] == [each["policy"]["rules"][0]["threshold"] for each in versions]
    assert ["doorkeeper"] == [each["name"] for each in admin.ask("GET", "/v1/risk-policies").ok()["items"]]
    assert 2 == admin.ask("GET", "/v1/risk-policies/doorkeeper").ok()["version"]
    admin.ask("GET", "/v1/risk-policies/other").problem(404, "POLICY_NOT_FOUND")
    admin.ask("DELETE", f"/v1/templates/{template_id}").ok()
    assert admin.ask("DELETE", "/v1/risk-policies/doorkeeper").ok()["policy"] is None


@pytest.mark.parametrize(
    "rule",
    [
        BURST | {"name": "Burst!"},
        BURST | {"name": "block_list"},
        BURST | {"window_s": None},
        BURST | {"threshold": -1},
        BURST | {"threshold": 1.5},
        BURST | {"verdict": "ban"},
        BURST | {"measure": "score"},
        BURST | {"dimension": "user", "measure": "distinct_users"},
        BURST | {"measure": "distinct_users", "threshold": 10_001},
        BURST | {"colour": "red"},
    ],
)
def test_a_rule_that_cannot_work_is_refused(admin: Caller, rule: dict[str, Any]) -> None:
    """Its place is named."""
    fields = admin.ask("PUT", "/v1/risk-policies/doorkeeper", {"rules": [rule]}).bad_fields()

    assert fields
    assert all(field.startswith("rules.0") for field in fields)


def test_a_template_with_a_policy_that_is_not_there_is_not_published(shop: Shop) -> None:
    """The field is named."""
    template_id = shop.desk.draft(risk_policy="nowhere")

    assert ["risk_policy"] == shop.desk.act(template_id, "publish").bad_fields()


def test_a_held_claim_waits_for_an_operator(shop: Shop, admin: Caller) -> None:
    """Its caller reads queued until somebody has decided."""
    put_policy(admin, BURST | {"threshold": 0, "verdict": "review"})
    template_id = shop.desk.open(risk_policy="doorkeeper")
    good, bad = (claim(shop, template_id, user, device_id="d1").ok(202)["claim_id"] for user in ("ann", "bob"))
    drain(shop.services, int(template_id), 0)

    waiting = shop.front.ask("GET", f"/v1/claims/{good}").ok()
    stock = shop.desk.stock(template_id)
    queue = admin.ask("GET", f"/v1/risk-reviews?state=held&template_id={template_id}").ok()["items"]
    assert ["comment"] == admin.ask("POST", f"/v1/risk-reviews/{bad}/reject", {}).bad_fields()
    approved = admin.ask("POST", f"/v1/risk-reviews/{good}/approve", {"comment": "known"}).ok()
    rejected = admin.ask("POST", f"/v1/risk-reviews/{bad}/reject", {"comment": "a farm"}).ok()

    assert ("queued", None, None) == (waiting["status"], waiting["reason"], waiting["settled_at"])
    assert (8, 2) == (stock["remaining"], stock["reserved"])
    assert [bad, good] == [each["claim_id"] for each in queue]
    assert ("burst", "held", "d1") == tuple(queue[0][name] for name in ("rule", "state", "device_id"))
    assert ("approved", None) == (approved["state"], approved["reason"])
    assert ("rejected", "RISK_REJECTED") == (rejected["state"], rejected["reason"])
    assert "issued" == shop.front.ask("GET", f"/v1/claims/{good}").ok()["status"]
    assert "RISK_REJECTED" == shop.front.ask("GET", f"/v1/claims/{bad}").ok()["reason"]
    decided = admin.ask("POST", f"/v1/risk-reviews/{good}/reject", {"comment": "no"})
    assert "approved" == decided.problem(409, "ALREADY_DECIDED")["state"]
    admin.ask("POST", "/v1/risk-reviews/x/approve", {}).problem(404, "REVIEW_NOT_FOUND")
    assert 9 == shop.desk.stock(template_id)["remaining"]


def test_lists_let_through_and_refuse(shop: Shop, admin: Caller) -> None:
    """Whatever the value holds."""
    put_policy(admin, BURST | {"threshold": 0})
    template_id = shop.desk.open(risk_policy="doorkeeper")
    kiosk = {"dimension": "device", "value": "kiosk/1 a", "expires_at": from_now(hours=1), "comment": "ours"}

    admin.ask("PUT", "/v1/risk-lists/allow", kiosk).ok()
    admin.ask("PUT", "/v1/risk-lists/block", {"dimension": "user", "value": "eve"}).ok()

    claim(shop, template_id, "ann", device_id="kiosk/1 a").ok(202)
    assert "block_list" == claim(shop, template_id, "eve").problem(403, "RISK_REJECTED")["rule"]
    [entry] = admin.ask("GET", "/v1/risk-lists/allow").ok()["items"]
    assert kiosk == {name: entry[name] for name in kiosk}
    off = "/v1/risk-lists/block?dimension=user&value=eve"
    assert "eve" == admin.ask("DELETE", off).ok()["value"]
    admin.ask("DELETE", off).problem(404, "ENTRY_NOT_FOUND")
    claim(shop, template_id, "eve").ok(202)
    assert ["value"] == admin.ask("PUT", "/v1/risk-lists/block", {"dimension": "user", "value": ""}).bad_fields()


def test_scores_are_set_and_asked_for(shop: Shop, admin: Caller) -> None:
    """The storefront asks; an operator may set one by hand."""
    rule = {"name": "risky", "dimension": "user", "measure": "score", "threshold": 700}
    put_policy(admin, rule)
    template_id = shop.desk.open(risk_policy="doorkeeper")

    admin.ask("PUT", "/v1/risk-scores/mal", {"score": 900}).ok()
    asked = shop.front.ask("POST", "/v1/risk-scores", {"user_ids": ["ann", "bob", "ann"]}).ok(202)

    assert 2 == asked["asked"]
    assert "risky" == claim(shop, template_id, "mal").problem(403, "RISK_REJECTED")["rule"]
    claim(shop, template_id, "ann").ok(202)
    assert 900 == admin.ask("GET", "/v1/risk-scores/mal").ok()["score"]
    admin.ask("GET", "/v1/risk-scores/ann").problem(404, "SCORE_NOT_FOUND")
    assert ["score"] == admin.ask("PUT", "/v1/risk-scores/mal", {"score": 1_001}).bad_fields()
