"""Risk control over HTTP, badly used: fields out of bounds, decisions twice, late, or at once (docs/risk.md)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import text

from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.runtime.services import Services
from tests.support.http_caller import Caller
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from tests.support.sale import assert_sound

RULE: dict[str, Any] = {
    "name": "look", "dimension": "device", "measure": "claims", "window_s": 60, "threshold": 0, "verdict": "review",
}  # fmt: skip
REASON = {"comment": "no"}


@pytest.fixture
def shop(services: Services) -> Shop:
    """No limit of claims in a second."""
    return Shop(services, claim_rate=0)


@pytest.fixture
def admin(shop: Shop) -> Caller:
    """An operator."""
    return shop.desk.admin


@pytest.mark.parametrize("user", ["a b", "tab\there", "line\u2028break", "x" * 65, "x" * 6_000])
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_a_user_who_cannot_be_has_no_score(shop: Shop, admin: Caller, method: str, user: str) -> None:
    """No claim could ever name him, and his name would not fit the index."""
    body = {"score": 900} if method == "PUT" else None

    assert ["user_id"] == admin.ask(method, f"/v1/risk-scores/{quote(user, safe='')}", body).bad_fields()

    with shop.services.engine.connect() as connection:
        assert 0 == connection.scalar(text("SELECT count(*) FROM risk_score"))


@pytest.fixture
def template_id(shop: Shop, admin: Caller) -> str:
    """A template of which every claim from a device is held."""
    admin.ask("PUT", "/v1/risk-policies/doorkeeper", {"rules": [RULE]}).ok()
    return str(shop.desk.open(risk_policy="doorkeeper"))


def held(shop: Shop, template_id: str, user: str = "ann") -> str:
    """A claim that is held."""
    claim_id = shop.front.claim(template_id, user, device_id="d1").ok(202)["claim_id"]
    drain(shop.services, int(template_id), 0)
    return str(claim_id)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"rules": [RULE | {"window_s": 0}]}, "rules.0.window_s"),
        ({"rules": [RULE | {"window_s": 30 * 86_400 + 1}]}, "rules.0.window_s"),
        ({"rules": [RULE | {"window_s": "60"}]}, "rules.0.window_s"),
        ({"rules": [RULE | {"window_s": True}]}, "rules.0.window_s"),
        ({"rules": [RULE | {"threshold": 10**15 + 1}]}, "rules.0.threshold"),
        ({"rules": [RULE | {"threshold": None}]}, "rules.0.threshold"),
        ({"rules": [RULE | {"dimension": "planet"}]}, "rules.0.dimension"),
        ({"rules": [RULE | {"dimension": ["device"]}]}, "rules.0.dimension"),
        ({"rules": [RULE | {"measure": "tears"}]}, "rules.0.measure"),
        (
            {"rules": [RULE | {"measure": "score", "dimension": "user", "window_s": None, "threshold": 1_001}]},
            "rules.0",
        ),
        ({"rules": [RULE | {"shadow": "yes"}]}, "rules.0.shadow"),
        ({"rules": [RULE | {"name": "a b"}]}, "rules.0.name"),
        ({"rules": [RULE | {"name": "missing_score"}]}, "rules.0"),
        ({"rules": [RULE, RULE]}, ""),
        ({"rules": [RULE | {"name": f"r{number}"} for number in range(21)]}, "rules"),
        ({"rules": {}}, "rules"),
        ({}, "rules"),
        ({"rules": [], "review_s": 59}, "review_s"),
        ({"rules": [], "review_s": 604_801}, "review_s"),
        ({"rules": [], "missing_score": "perhaps"}, "missing_score"),
        ({"rules": [], "count_refused": 2}, "count_refused"),
        ({"rules": [], "description": "x" * 501}, "description"),
    ],
)
def test_a_policy_out_of_bounds_is_refused(admin: Caller, changed: dict[str, Any], field: str) -> None:
    """The field is named, and no version is made."""
    assert [field] == admin.ask("PUT", "/v1/risk-policies/doorkeeper", changed).bad_fields()

    admin.ask("GET", "/v1/risk-policies/doorkeeper").problem(404, "POLICY_NOT_FOUND")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"dimension": "planet"}, "dimension"),
        ({"value": ""}, "value"),
        ({"value": "x" * 1_000}, "value"),
        ({"value": "a\nb"}, "value"),
        ({"value": 7}, "value"),
        ({"dimension": "ip", "value": "10.0.0.0/8"}, "value"),
        ({"dimension": "ip", "value": "2001:db8::/32"}, "value"),
        ({"expires_at": "soon"}, "expires_at"),
        ({"expires_at": "2026-11-11T00:00:00"}, "expires_at"),
        ({"expires_at": from_now(seconds=-1)}, "expires_at"),
        ({"comment": "x" * 2_000}, "comment"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(admin: Caller, changed: dict[str, Any], field: str) -> None:
    """The field is named, and nothing is listed."""
    body = {"dimension": "device", "value": "d1"} | changed

    assert [field] == admin.ask("PUT", "/v1/risk-lists/block", body).bad_fields()

    assert [] == admin.ask("GET", "/v1/risk-lists/block").ok()["items"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"score": -1}, "score"),
        ({"score": "900"}, "score"),
        ({"score": True}, "score"),
        ({"score": 1.5}, "score"),
        ({}, "score"),
        ({"score": 900, "expires_at": from_now(hours=-1)}, "expires_at"),
    ],
)
def test_a_score_that_is_none_is_refused(admin: Caller, body: dict[str, Any], field: str) -> None:
    """Nothing is known of the account afterwards."""
    assert [field] == admin.ask("PUT", "/v1/risk-scores/ann", body).bad_fields()

    admin.ask("GET", "/v1/risk-scores/ann").problem(404, "SCORE_NOT_FOUND")


@pytest.mark.parametrize("user_ids", [[], ["u"] * 501, ["a b"], [""], ["x" * 65], [1.5], [True], "ann", None])
def test_whoever_asks_for_scores_names_users(shop: Shop, user_ids: Any) -> None:
    """Up to 500, and each a user."""
    assert shop.front.ask("POST", "/v1/risk-scores", {"user_ids": user_ids}).bad_fields()


def test_what_is_not_there_is_not_found(admin: Caller) -> None:
    """Lists, policies, reviews; positions of pages and filters that are none."""
    for method, path in (("GET", "/v1/risk-lists/grey"), ("PUT", "/v1/risk-lists/grey")):
        assert ["name"] == admin.ask(method, path, {"dimension": "device", "value": "d1"}).bad_fields()
    admin.ask("DELETE", "/v1/risk-lists/allow?dimension=device&value=d1").problem(404, "ENTRY_NOT_FOUND")
    assert ["value"] == admin.ask("DELETE", "/v1/risk-lists/allow?dimension=device").bad_fields()
    for claim_id in ("0", "9" * 30, "-1"):
        admin.ask("POST", f"/v1/risk-reviews/{claim_id}/reject", REASON).problem(404, "REVIEW_NOT_FOUND")
    for path in ("risk-reviews?state=lost", "risk-verdicts?template_id=x", "risk-lists/allow?cursor=x"):
        assert admin.ask("GET", f"/v1/{path}").bad_fields()


def test_only_an_operator_sees_and_decides(shop: Shop, template_id: str) -> None:
    """The storefront's key opens none of it."""
    claim_id = held(shop, template_id)

    for method, path, body in (
        ("GET", "/v1/risk-reviews", None),
        ("POST", f"/v1/risk-reviews/{claim_id}/approve", {}),
        ("PUT", "/v1/risk-lists/allow", {"dimension": "device", "value": "d1"}),
        ("PUT", "/v1/risk-policies/doorkeeper", {"rules": []}),
        ("GET", "/v1/risk-verdicts", None),
        ("PUT", "/v1/risk-scores/ann", {"score": 0}),
    ):
        assert 403 == shop.front.ask(method, path, body).status


def test_an_entry_that_has_expired_is_listed_no_more(shop: Shop, admin: Caller, template_id: str) -> None:
    """Neither in the list nor at the gate; taken off it is all the same, once."""
    entry = {"dimension": "device", "value": "d1", "expires_at": from_now(hours=1)}
    admin.ask("PUT", "/v1/risk-lists/block", entry).ok()
    with shop.services.engine.begin() as connection:
        connection.execute(
            text("UPDATE risk_list_entry SET expires_at = now() - interval '1 s', version = version + 1")
        )
    preheat_template(shop.services, int(template_id))

    shop.front.claim(template_id, "ann", device_id="d1").ok(202)

    assert [] == admin.ask("GET", "/v1/risk-lists/block").ok()["items"]
    off = "/v1/risk-lists/block?dimension=device&value=d1"
    admin.ask("DELETE", off).ok()
    admin.ask("DELETE", off).problem(404, "ENTRY_NOT_FOUND")


def test_a_long_list_is_at_every_gate_and_read_in_pages(shop: Shop, admin: Caller, template_id: str) -> None:
    """More than are brought at a time; each entry once, in order."""
    with shop.services.engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO risk_list_entry (dimension, value, list, version, changed_at)
                SELECT 'device', 'farm-' || to_char(n, 'FM0000'), 'block', nextval('risk_version'), now()
                  FROM generate_series(1, 2500) AS n
            """)
        )
    preheat_template(shop.services, int(template_id))

    values: list[str] = []
    cursor = ""
    while True:
        found = admin.ask("GET", f"/v1/risk-lists/block?limit=200{cursor}").ok()
        values += [entry["value"] for entry in found["items"]]
        if found["next_cursor"] is None:
            break
        cursor = f"&cursor={found['next_cursor']}"

    assert [f"farm-{number:04}" for number in range(1, 2_501)] == values
    for number in (1, 1_000, 1_001, 2_500):
        refused = shop.front.claim(template_id, f"u{number}", device_id=f"farm-{number:04}")
        assert "block_list" == refused.problem(403, "RISK_REJECTED")["rule"]


def test_of_two_operators_who_decide_at_once_one_does(shop: Shop, admin: Caller, template_id: str) -> None:
    """The other is told what became of it; the claim ends as the first has said."""
    for number in range(4):
        claim_id = held(shop, template_id, f"u{number}")
        path = f"/v1/risk-reviews/{claim_id}"
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(admin.ask, "POST", f"{path}/{how}", REASON) for how in ("approve", "reject")]
            replies = [each.result() for each in asked]

        (won,) = [reply.ok() for reply in replies if reply.status == 200]
        (lost,) = [reply for reply in replies if reply.status != 200]
        assert won["state"] == lost.problem(409, "ALREADY_DECIDED")["state"]
        status = shop.front.read_claim(claim_id).ok()["status"]
        assert ("issued" if won["state"] == "approved" else "rejected") == status
    assert_sound(shop.services)


def test_the_same_decision_twice_is_one(shop: Shop, admin: Caller, template_id: str) -> None:
    """Answered as the first; another one is refused with what was decided."""
    claim_id = held(shop, template_id)

    first, again = (admin.ask("POST", f"/v1/risk-reviews/{claim_id}/reject", REASON).ok() for _ in range(2))

    assert first == again
    late = admin.ask("POST", f"/v1/risk-reviews/{claim_id}/approve", {})
    assert "rejected" == late.problem(409, "ALREADY_DECIDED")["state"]
    audited = admin.ask("GET", "/v1/audit-log?action=risk_review.reject").ok()["items"]
    assert 1 == len(audited)
    assert_sound(shop.services)


@pytest.mark.parametrize("how", ["approve", "reject"])
def test_past_its_deadline_nobody_decides(shop: Shop, admin: Caller, template_id: str, how: str) -> None:
    """Whether the sweep has come or not: it has expired, and its unit is back."""
    claim_id = held(shop, template_id)
    with shop.services.engine.begin() as connection:
        connection.execute(text("UPDATE risk_review SET deadline_at = now() - interval '1 s'"))

    for _ in range(2):
        reply = admin.ask("POST", f"/v1/risk-reviews/{claim_id}/{how}", REASON)
        assert "expired" == reply.problem(409, "ALREADY_DECIDED")["state"]

    assert "RISK_REJECTED" == shop.front.read_claim(claim_id).ok()["reason"]
    assert 10 == shop.desk.stock(template_id)["remaining"]
    assert_sound(shop.services)


@pytest.mark.parametrize(("action", "reason"), [("offline", "OFFLINE"), ("pause", "PAUSED"), ("end", None)])
def test_a_template_that_is_over_meanwhile_does_not_hinder_the_decision(
    shop: Shop, admin: Caller, template_id: str, action: str, reason: str | None
) -> None:
    """Approved it ends as what was queued then: issued where the time was over, else rejected."""
    good, bad = held(shop, template_id, "ann"), held(shop, template_id, "bob")
    if action == "end":
        with shop.services.engine.begin() as connection:
            past = "UPDATE coupon_template SET status = 'ended', claim_end = now() - interval '1 s'"
            connection.execute(text(past))
    else:
        shop.desk.act(template_id, action).ok()

    approved = admin.ask("POST", f"/v1/risk-reviews/{good}/approve", {}).ok()
    rejected = admin.ask("POST", f"/v1/risk-reviews/{bad}/reject", REASON).ok()

    assert ("approved", reason) == (approved["state"], approved["reason"])
    assert ("rejected", "RISK_REJECTED") == (rejected["state"], rejected["reason"])
    assert "rejected" == shop.front.read_claim(bad).ok()["status"]
    assert ("rejected" if reason else "issued") == shop.front.read_claim(good).ok()["status"]
    assert_sound(shop.services)
