"""Risk control in the console: policies, lists, held claims, verdicts, with what people do wrong."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.risk.listing import read_entries
from coupon_workers.risk.policy_reading import read_policies, read_policy
from coupon_workers.risk.review_reading import read_reviews
from tests.support.console_risk_pages import POLICY, RULES, at_work, claim, held, put_policy
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop
from web.console.guard import TOKEN_FIELD

FORM = {
    "name": "night-watch",
    "rule_0": "burst",
    "dimension_0": "device",
    "measure_0": "claims",
    "window_0": "5",
    "unit_0": "60",
    "threshold_0": "3",
    "verdict_0": "reject",
    "review": "2",
    "review_unit": "3600",
    "missing_score": "allow",
}


def written(shop: Shop, visitor: Visitor) -> list[str]:
    """What the audit log says of a visitor, in order."""
    statement = text("SELECT action FROM audit_log WHERE operator = :key_id ORDER BY audit_id")
    with shop.services.engine.connect() as connection:
        return list(connection.scalars(statement, {"key_id": visitor.key.record.key_id}))


def decide(visitor: Visitor, claims: list[str], decision: str, reason: str = "") -> Any:
    """Send the form of held claims."""
    fields = {TOKEN_FIELD: visitor.form_token, "claim_id": claims, "decision": decision, "reason": reason}
    return visitor.client.post("/console/risk-reviews", data=fields, headers={"Accept-Language": "en"})


def test_a_policy_is_made_and_changed(shop: Shop, zoe: Visitor) -> None:
    """Minutes and hours are seconds in the core; what is not ticked is off; each version is in the audit log."""
    zoe.done("/new-risk-policy", **FORM, shadow_0="on")
    first = read_policy(shop.services, "night-watch")
    zoe.done("/risk-policies/night-watch/edit", **FORM | {"version": "1", "threshold_0": "4"})
    second = read_policy(shop.services, "night-watch")

    assert first.policy is not None and second.policy is not None
    [rule] = first.policy.rules
    assert ("burst", 300, 3, "reject", True) == (rule.name, rule.window_s, rule.threshold, rule.verdict, rule.shadow)
    assert (7_200, False) == (first.policy.review_s, first.policy.count_refused)
    assert (2, 4, False) == (second.version, second.policy.rules[0].threshold, second.policy.rules[0].shadow)
    assert ["risk_policy.put"] * 2 == written(shop, zoe)
    assert 'value="5"' in zoe.page("/risk-policies/night-watch/edit")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "night watch"}, "Only letters, digits, dots, dashes and underscores"),
        ({"rule_0": "Burst!"}, "Begin with a small letter"),
        ({"rule_0": "block_list"}, "This name is kept for lists and scores."),
        ({"window_0": ""}, "Say how far back it looks."),
        ({"window_0": "-1"}, "Write a whole number"),
        ({"window_0": "31", "unit_0": "86400"}, "This is too large."),
        ({"threshold_0": ""}, "Fill this in."),
        ({"threshold_0": "many"}, "Write a whole number"),
        ({"dimension_0": "user", "measure_0": "distinct_users"}, "A user is one user"),
        ({"measure_0": "score", "threshold_0": "1001"}, "A score is 1000 at most."),
        ({"measure_0": "distinct_users", "threshold_0": "10001"}, "Different users are counted up to 10,000."),
        ({"review": "8", "review_unit": "86400"}, "This is too large."),
        ({"rule_1": "burst", "window_1": "1", "threshold_1": "1"}, "Two rules have the same name."),
    ],
)
def test_a_policy_that_cannot_work_is_told_at_its_fields(
    shop: Shop, zoe: Visitor, fields: dict[str, str], told: str
) -> None:
    """Nothing of the form is lost, and nothing is saved."""
    row = {"dimension_1": "device", "measure_1": "claims", "unit_1": "60", "verdict_1": "reject"}

    answer = zoe.post("/new-risk-policy", **FORM | row | fields)

    assert 422 == answer.status_code
    assert told in answer.text
    assert 'value="night' in answer.text
    assert [] == read_policies(shop.services, limit=1)


def test_a_rule_without_a_name_is_named_by_what_it_counts(shop: Shop, zoe: Visitor) -> None:
    """A name that stands there at first would outlive a change of what is counted."""
    zoe.done("/new-risk-policy", **FORM | {"rule_0": "", "measure_0": "distinct_users", "dimension_0": "ip"})

    policy = read_policy(shop.services, "night-watch").policy
    assert policy is not None
    assert "ip_distinct_users" == policy.rules[0].name
    assert 'name="rule_0" type="text" value=""' in zoe.page("/new-risk-policy")


def test_a_name_that_is_taken_is_not_put_over(shop: Shop, zoe: Visitor) -> None:
    """Also of a policy that was made while the form was open."""
    put_policy(shop, *RULES, name="night-watch")

    answer = zoe.post("/new-risk-policy", **FORM)

    assert 409 == answer.status_code
    assert "There is a policy of this name already." in answer.text
    assert 1 == read_policy(shop.services, "night-watch").version


def test_of_two_who_change_a_policy_the_second_is_told(shop: Shop, zoe: Visitor) -> None:
    """His form is shown again, with the way to what is in force; a switch of an old page is refused too."""
    put_policy(shop, *RULES)
    ben = Visitor(shop, "admin", name="Ben")

    zoe.done(f"/risk-policies/{POLICY}/edit", **FORM | {"version": "1"})
    late = ben.post(f"/risk-policies/{POLICY}/edit", **FORM | {"version": "1", "threshold_0": "77"})
    switched = ben.post(f"/risk-policies/{POLICY}/shadow", rule="burst", version="1", shadow="on")

    assert 409 == late.status_code == switched.status_code
    assert "Somebody changed it meanwhile" in late.text and 'value="77"' in late.text
    assert 2 == read_policy(shop.services, POLICY).version
    assert [] == written(shop, ben)


def test_more_rules_are_given_room_until_there_are_twenty(zoe: Visitor) -> None:
    """What was typed stays; nothing is saved; the last row offers no more."""
    typed = {f"rule_{place}": f"r{place}" for place in range(18)}

    more = zoe.post("/new-risk-policy", **FORM | typed | {"do": "more"})

    assert 200 == more.status_code
    assert 'name="rule_19"' in more.text and 'name="rule_20"' not in more.text
    assert 'value="r17"' in more.text and "More rules" not in more.text


def test_a_rule_is_tried_and_then_in_earnest(shop: Shop, zoe: Visitor) -> None:
    """The page tells what it has stopped and what it would have."""
    at_work(shop)

    page = zoe.page(f"/risk-policies/{POLICY}")
    zoe.done(f"/risk-policies/{POLICY}/shadow", rule="much_money", version="1")
    zoe.done(f"/risk-policies/{POLICY}/shadow", rule="device_burst", version="2", shadow="on")

    found = read_policy(shop.services, POLICY)
    assert found.policy is not None
    assert [True, False, False] == [rule.shadow for rule in found.policy.rules]
    assert "more claims of one device than 2 in 1 h" in page
    assert "Would have stopped" in page and "users: 3" in page
    assert "满100减20 双十一" in page


def test_a_policy_that_templates_name_stays(shop: Shop, zoe: Visitor) -> None:
    """Another goes; its page is gone then."""
    shop.desk.draft(risk_policy=POLICY)
    put_policy(shop, *RULES)
    put_policy(shop, name="idle")

    refused = zoe.post(f"/risk-policies/{POLICY}/delete")
    zoe.done("/risk-policies/idle/delete")

    assert 409 == refused.status_code
    assert "Templates name this policy" in refused.text
    assert [POLICY] == [each.name for each in read_policies(shop.services, limit=9)]
    assert 404 == zoe.get("/risk-policies/idle").status_code
    assert ["risk_policy.delete"] == written(shop, zoe)


def test_a_template_is_given_a_policy(shop: Shop, zoe: Visitor) -> None:
    """In the form of a draft; what another page does not show, it does not take away."""
    put_policy(shop, *RULES)
    draft = shop.desk.draft(risk_policy=POLICY)

    form = zoe.page(f"/templates/{draft}/edit")

    assert f'<option value="{POLICY}" selected>' in form
    assert f"/console/risk-policies/{POLICY}" in zoe.page(f"/templates/{draft}")


def test_somebody_is_listed_searched_and_taken_off(shop: Shop, zoe: Visitor) -> None:
    """An IPv6 address is found by any of its network; the other list lets go of what this one takes."""
    zoe.done("/risk-lists?name=allow", dimension="device", value="phone-1")
    zoe.done(
        "/risk-lists?name=block", dimension="device", value="phone-1", comment="a farm", expires_at="2035-01-01T00:00"
    )
    zoe.done("/risk-lists?name=block", dimension="ip", value="2001:db8::7")

    page = zoe.page("/risk-lists")
    searched = zoe.page("/risk-lists?q=phone")
    network = zoe.page("/risk-lists?q=2001:db8::9&dimension=ip")
    zoe.done("/risk-lists/take-off?name=block", dimension="device", value="phone-1")
    gone = zoe.post("/risk-lists/take-off?name=block", dimension="device", value="phone-1")

    assert "phone-1" in page and "2001:db8::" in page and "a farm" in page
    assert "2001:db8::" not in searched and "phone-1" in searched
    assert "2001:db8::" in network and "phone-1" not in network
    assert "Nothing on this list is like this." in zoe.page("/risk-lists?q=phone-2")
    assert "Nobody is on this list." in zoe.page("/risk-lists?name=allow")
    assert 404 == gone.status_code and "It is on this list no longer." in gone.text
    assert ["2001:db8::"] == [entry.value for entry in read_entries(shop.services, "block", limit=9)]
    assert ["risk_list.put"] * 3 + ["risk_list.delete"] == written(shop, zoe)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"value": ""}, "Fill this in."),
        ({"value": "x" * 500}, "This is too long."),
        ({"dimension": "shoe"}, "Choose one."),
        ({"expires_at": "soon"}, "Write a date and a time"),
        ({"expires_at": "2020-01-01T00:00"}, "It must not be over already."),
    ],
)
def test_an_entry_that_cannot_be_is_told_at_its_field(
    shop: Shop, zoe: Visitor, fields: dict[str, str], told: str
) -> None:
    """What was typed stays."""
    answer = zoe.post("/risk-lists", **{"dimension": "device", "value": "phone-1", "comment": "a farm"} | fields)

    assert 422 == answer.status_code
    assert told in answer.text and "a farm" in answer.text
    assert [] == read_entries(shop.services, "block", limit=1)


def test_held_claims_are_shown_with_why_and_decided(shop: Shop, zoe: Visitor) -> None:
    """One by its button, two together; the nearest deadline comes first."""
    claims = held(shop, "ann", "ben", "cleo", review_s=7_200)

    page = zoe.page("/risk-reviews")
    zoe.done("/risk-reviews", one=claims["ann"])
    refused = decide(zoe, [claims["ben"], claims["cleo"]], "rejected", "a farm")

    assert page.index(">ann<") < page.index(">ben<") < page.index(">cleo<")
    assert "more users of one network address than 0 in 1 d" in page and "much_money" in page
    assert "phone-ann" in page and "1 h" in page
    assert 303 == refused.status_code
    states = {review.user_id: (review.state, review.comment) for review in read_reviews(shop.services, limit=9)}
    assert {"ann": ("approved", None), "ben": ("rejected", "a farm"), "cleo": ("rejected", "a farm")} == states
    assert ["risk_review.approve", "risk_review.reject", "risk_review.reject"] == written(shop, zoe)
    assert "No claim waits." in zoe.page("/risk-reviews")
    assert "a farm" in zoe.page("/risk-reviews?state=all")
    shop.assert_sound()


def test_what_somebody_else_has_decided_is_told_and_the_rest_is_done(shop: Shop, zoe: Visitor) -> None:
    """Two operators have the same list open."""
    claims = held(shop, "ann", "ben", "cleo")
    boss = Visitor(shop, "admin", name="Boss")

    first = decide(boss, [claims["ann"]], "approved")
    second = decide(zoe, [*claims.values(), "nonsense"], "rejected", "a farm")

    assert (303, 409) == (first.status_code, second.status_code)
    assert "Decided: 2. Not these:" in second.text
    assert "ann · approved: It was decided already" in second.text and "No such claim was held." in second.text
    assert ["approved", "rejected", "rejected"] == sorted(each.state for each in read_reviews(shop.services, limit=9))


def test_a_refusal_needs_a_reason_and_a_choice(shop: Shop, zoe: Visitor) -> None:
    """What was chosen stays chosen."""
    claims = held(shop, "ann")

    without = decide(zoe, [claims["ann"]], "rejected")
    nothing = decide(zoe, [], "approved")
    unknown = decide(zoe, [claims["ann"]], "none")

    assert [422] * 3 == [answer.status_code for answer in (without, nothing, unknown)]
    assert (
        "Say why" in without.text
        and f'value="{claims["ann"]}" aria-label="Choose the claim of ann" checked' in without.text
    )
    assert "Choose at least one claim." in nothing.text
    assert ["held"] == [review.state for review in read_reviews(shop.services, limit=9)]


def test_the_log_is_narrowed_by_user_rule_and_template(shop: Shop, zoe: Visitor) -> None:
    """A rule that never fired says so; nonsense is told at its field."""
    template_id = at_work(shop)

    page = zoe.page("/risk-verdicts")
    by_rule = zoe.page("/risk-verdicts?rule=device_burst")
    by_user = zoe.page(f"/risk-verdicts?user=u-0&template_id={template_id}")

    assert all(rule["name"] in page for rule in RULES)
    assert "much_money</a>" not in by_rule and "the claim was refused" in by_rule
    assert ">u-0<" in by_user and ">u-3<" not in by_user
    assert "No rule fired so." in zoe.page("/risk-verdicts?rule=other")
    assert 422 == zoe.get("/risk-verdicts?template_id=x").status_code == zoe.get("/risk-verdicts?rule=NO!").status_code


def test_what_people_type_is_shown_as_text(shop: Shop, zoe: Visitor) -> None:
    """A device may call itself anything."""
    shop.desk.admin.ask("PUT", "/v1/risk-policies/doorkeeper", {"rules": [RULES[1] | {"threshold": 0}]}).ok()
    template_id = shop.desk.open(risk_policy=POLICY)
    claim(shop, template_id, "ann", device_id="<script>alert(1)</script>", ip="203.0.113.7").ok(202)
    shop.settle(template_id)

    for path in ("/risk-reviews", "/risk-verdicts", "/risk-lists?put=<script>alert(1)</script>&kind=device"):
        page = zoe.page(path)
        assert "<script>alert" not in page and "&lt;script&gt;alert" in page


@pytest.mark.parametrize(
    "path", ["/risk-policies", "/new-risk-policy", "/risk-lists", "/risk-reviews", "/risk-verdicts"]
)
def test_others_are_refused(shop: Shop, path: str) -> None:
    """A key of another scope sees none of it; without a session one is asked to log in."""
    ops = Visitor(shop, "ops")

    assert 403 == ops.get(path).status_code
    assert 303 == shop.app.test_client().get(f"/console{path}").status_code


def test_a_form_of_an_earlier_session_does_nothing(shop: Shop, zoe: Visitor) -> None:
    """Its token is another's."""
    claims = held(shop, "ann")
    fields = {TOKEN_FIELD: "x" * 32, "claim_id": claims["ann"], "decision": "approved"}

    answer = zoe.client.post("/console/risk-reviews", data=fields)

    assert 403 == answer.status_code
    assert ["held"] == [review.state for review in read_reviews(shop.services, limit=9)]
