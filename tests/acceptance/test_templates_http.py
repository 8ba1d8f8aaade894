"""Templates over HTTP: the contract of API.md, by the test client, on real servers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate
from sqlalchemy import text
from werkzeug.test import TestResponse

from coupon_workers.claiming.settlement import drain
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template import TemplateBody
from tests.support.flask_caller import key_header
from tests.support.template_operator import BODY, NOW, Operator, problem_of


@pytest.fixture
def admin(client: FlaskClient, services: Services) -> Operator:
    """An operator."""
    return Operator(client, key_header(services, "admin"))


def test_a_template_is_answered_as_it_was_asked_for(admin: Operator) -> None:
    """With its identity as text, its state and its stock."""
    response = admin.ask("POST", "/v1/templates", BODY)

    answer = response.get_json()
    assert 201 == response.status_code
    assert BODY == {name: answer[name] for name in BODY}
    assert isinstance(answer["template_id"], str)
    stock = {"total": 1000, "issued": 0, "queued": 0, "reserved": 0, "remaining": 1000, "warmed": False}
    assert ("draft", 1, stock) == (answer["status"], answer["version"], answer["stock"])
    assert answer == admin.read(answer)


def test_an_answer_can_be_sent_back_and_moves_nothing(admin: Operator) -> None:
    """GET, then PATCH with the same body five times, of a draft and of an active template."""
    validity = {"mode": "fixed", "from": "2026-11-01T00:00:00+09:30", "to": rfc3339(NOW), "until_end_of_day": True}
    template = admin.created(validity=validity)
    for _ in ("draft", "active"):
        before = admin.read(template)
        answers = [admin.ask("PATCH", f"/v1/templates/{template['template_id']}", before) for _ in range(5)]
        assert [before] * 5 == [answer.get_json() for answer in answers]
        admin.act(template, "publish")


def test_a_published_template_keeps_its_rules(admin: Operator) -> None:
    """The refusal names the fields; what may change, changes."""
    template = admin.created()
    admin.act(template, "publish")
    path = f"/v1/templates/{template['template_id']}"

    refused = admin.ask("PATCH", path, {"amount": 1, "timezone": "UTC", "name": "N"})
    changed = admin.ask("PATCH", path, {"name": "N", "notify": False, "total_quantity": 1001})

    assert ["amount", "timezone"] == problem_of(refused, 409, "NOT_PATCHABLE")["fields"]
    answer = changed.get_json()
    assert ("N", False, 1001, 1001) == (
        answer["name"],
        answer["notify"],
        answer["stock"]["total"],
        answer["stock"]["remaining"],
    )


DRAFT, PENDING = "draft", "pending_approval"
HOW_TO: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    DRAFT: ({}, ()),
    PENDING: ({"approval_required": True}, ("publish",)),
    "scheduled": ({"claim_start": rfc3339(NOW + timedelta(hours=1))}, ("publish",)),
    "active": ({}, ("publish",)),
    "paused": ({}, ("publish", "pause")),
    "ended": ({"claim_start": rfc3339(NOW - timedelta(days=2)), "claim_end": rfc3339(NOW)}, ("publish",)),
    "offline": ({}, ("publish", "offline")),
    "archived": ({}, ("archive",)),
}
PUBLISHED = ("scheduled", "active", "paused", "ended", "offline")
GOAL: dict[tuple[str, str], str] = {
    **{(status, "archive"): "archived" for status in HOW_TO},
    **{(status, "offline"): "offline" for status in PUBLISHED},
    **{(status, "preheat"): status for status in PUBLISHED},
    (DRAFT, "publish"): "active",
    ("scheduled", "pause"): "paused",
    ("active", "pause"): "paused",
    ("paused", "pause"): "paused",
    ("paused", "resume"): "active",
}
"""Every other action of a template in that status is a 409 that tells the status."""


@pytest.mark.parametrize("status", HOW_TO)
def test_every_action_in_every_status_is_done_or_refused(admin: Operator, status: str) -> None:
    """The table says which, and where it leads."""
    fields, way = HOW_TO[status]
    for action in ("publish", "pause", "resume", "offline", "preheat", "archive"):
        template = admin.created(**fields)
        for step in way:
            perform(admin, template, step)
        assert status == admin.read(template)["status"]

        response = perform(admin, template, action)

        goal = GOAL.get((status, action))
        if (status, action) == ("archived", "preheat"):
            continue  # nothing depends on whether an archived template may be loaded
        if goal is None:
            problem_of(response, 409, "INVALID_STATUS")
            assert status == admin.read(template)["status"]
        else:
            assert (200, goal) == (response.status_code, response.get_json()["status"]), (action, response.text)
            assert goal == admin.read(template)["status"]


def perform(admin: Operator, template: dict[str, Any], action: str) -> TestResponse:
    """An action by its name; archiving is DELETE."""
    if action == "archive":
        return admin.ask("DELETE", f"/v1/templates/{template['template_id']}")
    return admin.act(template, action)


def test_a_template_with_coupons_out_is_not_archived(admin: Operator, services: Services, client: FlaskClient) -> None:
    """The refusal counts them by status."""
    template = admin.created()
    admin.act(template, "publish")
    shop = Operator(client, key_header(services, "storefront"))
    for user in ("ann", "bob"):
        claim = {"template_id": template["template_id"], "user_id": user, "request_id": "r1"}
        assert 202 == shop.ask("POST", "/v1/claims", claim).status_code
    drain(services, int(template["template_id"]), 0)

    refused = perform(admin, template, "archive")
    stats = admin.ask("GET", f"/v1/templates/{template['template_id']}/stats").get_json()

    assert {"unused": 2} == problem_of(refused, 409, "HAS_OUTSTANDING")["by_status"]
    assert (2, 2, {}, 0) == (stats["issued"], stats["by_status"]["unused"], stats["rejected"], stats["discount"])


def test_a_number_is_taken_once(admin: Operator) -> None:
    """The second template with it is refused."""
    admin.created(template_no="TPL-1")

    response = admin.ask("POST", "/v1/templates", BODY | {"template_no": "TPL-1"})

    assert "TPL-1" == problem_of(response, 409, "TEMPLATE_NO_TAKEN")["template_no"]


def test_a_total_below_what_is_taken_is_refused(admin: Operator, services: Services) -> None:
    """The refusal says what takes it."""
    template = admin.created()
    with services.engine.begin() as connection:
        connection.execute(text("UPDATE coupon_template SET issued_quantity = 3, reserved_quantity = 4"))

    response = admin.ask("PATCH", f"/v1/templates/{template['template_id']}", {"total_quantity": 6})

    problem = problem_of(response, 409, "BELOW_TAKEN")
    assert (3, 4, 0) == (problem["issued"], problem["reserved"], problem["queued"])


def test_a_clone_is_a_draft_of_its_own(admin: Operator) -> None:
    """With the rules of the original."""
    template = admin.created(template_no="TPL-1")
    admin.act(template, "publish")

    response = admin.act(template, "clone")

    clone = response.get_json()
    assert (201, "draft", 1) == (response.status_code, clone["status"], clone["version"])
    assert BODY | {"template_no": clone["template_no"]} == {name: clone[name] for name in BODY}
    assert clone["template_no"] != "TPL-1"


def test_lists_go_on_where_the_page_before_ended(admin: Operator) -> None:
    """Newest first, to the end."""
    made = [admin.created()["template_id"] for _ in range(5)]

    seen, cursor = [], ""
    while cursor is not None:
        page = admin.ask("GET", f"/v1/templates?limit=2{cursor and f'&cursor={cursor}'}").get_json()
        seen.append([template["template_id"] for template in page["items"]])
        cursor = page["next_cursor"]

    assert [[made[4], made[3]], [made[2], made[1]], [made[0]]] == seen


def test_lists_are_of_a_status(admin: Operator) -> None:
    """As it is now."""
    admin.created()
    active = admin.created()
    admin.act(active, "publish")

    page = admin.ask("GET", "/v1/templates?status=active").get_json()

    assert [active["template_id"]] == [template["template_id"] for template in page["items"]]


def test_a_storefront_reads_and_does_not_write(admin: Operator, client: FlaskClient, services: Services) -> None:
    """Without a key nothing is told."""
    template = admin.created()
    shop = Operator(client, key_header(services, "storefront"))
    path = f"/v1/templates/{template['template_id']}"

    assert template == shop.read(template)
    assert 1 == len(shop.ask("GET", "/v1/templates").get_json()["items"])
    for method, target in (("POST", "/v1/templates"), ("PATCH", path), ("DELETE", path), ("POST", f"{path}/pause")):
        problem_of(shop.ask(method, target, b"not even JSON"), 403, "FORBIDDEN")
    problem_of(shop.ask("GET", f"{path}/stats"), 403, "FORBIDDEN")
    assert 401 == client.get(path).status_code


def test_a_creation_that_is_sent_again_makes_one_template(admin: Operator) -> None:
    """The stored answer comes back under the same key."""
    body = BODY | {"template_no": None}
    first, second = (admin.ask("POST", "/v1/templates", body, Idempotency_Key="k1") for _ in range(2))

    assert (201, 201, first.get_json()) == (first.status_code, second.status_code, second.get_json())
    assert "true" == second.headers["Idempotency-Replayed"]
    assert 1 == len(admin.ask("GET", "/v1/templates").get_json()["items"])


def test_the_published_description_knows_the_templates(client: FlaskClient) -> None:
    """Every operation with its body, its answer and its refusals."""
    document = client.get("/openapi.json").get_json()

    validate(document)
    create = document["paths"]["/v1/templates"]["post"]
    patch = document["paths"]["/v1/templates/{template_id}"]["patch"]
    schemas = document["components"]["schemas"]
    assert {"201", "401", "403", "409", "422"} <= set(create["responses"])
    assert {"200", "404", "409", "422"} <= set(patch["responses"])
    assert set(TemplateBody.model_fields) == set(schemas["TemplateBody"]["properties"])
    assert set(schemas["TemplateAnswer"]["properties"]) == set(schemas["TemplatePatch"]["properties"])
    for action in ("publish", "pause", "resume", "offline", "preheat", "clone"):
        assert "post" in document["paths"][f"/v1/templates/{{template_id}}/{action}"]


def test_bodies_and_answers_are_as_the_description_says(admin: Operator, client: FlaskClient) -> None:
    """Of each kind of template, made, read, listed, loaded and counted."""
    components = client.get("/openapi.json").get_json()["components"]
    pool = {"min": 1, "max": 9, "budget": 5000, "distribution": "normal"}
    tiers = {"distribution": "tiered", "tiers": [{"min": 1, "max": 3, "weight": 1}, {"min": 4, "max": 9, "weight": 9}]}
    kinds: list[dict[str, Any]] = [
        {},
        {"type": "percent_off", "amount": None, "percent_off": 1500, "max_discount": 5000},
        {"type": "cash", "threshold": 0, "scope": {"products": {"include": ["p9"]}}},
        {"type": "random_amount", "amount": None, "pool": pool},
        {"type": "random_amount", "amount": None, "pool": pool | tiers},
        {"validity": {"mode": "fixed", "from": BODY["claim_start"], "to": BODY["claim_end"], "until_end_of_day": True}},
    ]
    for kind in kinds:
        answer = admin.created(**kind)
        perform(admin, answer, "publish")
        path = f"/v1/templates/{answer['template_id']}"
        said = {
            "TemplateBody": BODY | kind,
            "TemplatePatch": answer,
            "TemplateAnswer": answer,
            "TemplatePage": admin.ask("GET", "/v1/templates").get_json(),
            "PreheatAnswer": admin.ask("POST", f"{path}/preheat").get_json(),
            "TemplateStats": admin.ask("GET", f"{path}/stats").get_json(),
        }
        for name, value in said.items():
            schema = {"$ref": f"#/components/schemas/{name}", "components": components}
            assert [] == [error.message for error in OAS31Validator(schema).iter_errors(value)], name
