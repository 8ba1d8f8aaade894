"""What is wrong with a template over HTTP is named by its field, and nothing is stored or moved."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from coupon_workers.runtime.services import Services
from tests.support.flask_caller import key_header
from tests.support.template_operator import BODY, Operator, bad_fields, problem_of


@pytest.fixture
def admin(client: FlaskClient, services: Services) -> Operator:
    """An operator."""
    return Operator(client, key_header(services, "admin"))


BAD_BODIES: list[tuple[str, dict[str, Any]]] = [
    ("name", {"name": "nul\x00"}),
    ("name", {"name": "half \ud83c"}),
    ("name", {"name": "x" * 65}),
    ("amount", {"amount": True}),
    ("amount", {"amount": "2000"}),
    ("amount", {"amount": 2000.0}),
    ("amount", {"amount": 2**53}),
    ("amount", {"amount": 10**100}),
    ("total_quantity", {"total_quantity": True}),
    ("total_quantity", {"total_quantity": 0}),
    ("per_user_limit", {"per_user_limit": 0}),
    ("claim_start", {"claim_start": "2026-11-11T00:00:00"}),
    ("claim_start", {"claim_start": 1_794_326_400}),
    ("claim_end", {"claim_end": BODY["claim_start"]}),
    ("validity.to", {"validity": {"mode": "fixed", "from": "2026-11-11T00:00:00Z", "to": "2026-12-01T00:00:00"}}),
    ("validity.mode", {"validity": {"mode": "always"}}),
    ("scope.products.include.0", {"scope": {"products": {"include": [None]}}}),
    ("scope.products.exclude.0", {"scope": {"products": {"exclude": ["\x00"]}}}),
    ("timezone", {"timezone": "Mars/Olympus"}),
    ("currency", {"currency": "XXX"}),
    ("transferable", {"transferable": 0}),
    ("colour", {"colour": "red"}),
    ("template_id", {"template_id": "1"}),
    ("stock", {"stock": None}),
    ("pool.budget", {"type": "random_amount", "amount": None, "pool": {"min": 1, "max": 2, "budget": 1}}),
    ("percent_off", {"percent_off": 1}),
]


@pytest.mark.parametrize(("field", "change"), BAD_BODIES)
def test_a_bad_body_is_refused_by_field_and_nothing_is_stored(
    admin: Operator, field: str, change: dict[str, Any]
) -> None:
    """The answer names the field, and there is no template."""
    response = admin.ask("POST", "/v1/templates", BODY | change)

    assert [field] == bad_fields(response)
    assert [] == admin.ask("GET", "/v1/templates").get_json()["items"]


def test_all_that_is_wrong_is_named_at_once(admin: Operator) -> None:
    """Fields, unknown fields, and rules between fields."""
    change = {"name": 7, "amount": None, "colour": "red", "claim_end": BODY["claim_start"], "per_user_daily_limit": 2}

    fields = bad_fields(admin.ask("POST", "/v1/templates", BODY | change))

    assert ["amount", "claim_end", "colour", "name", "per_user_daily_limit"] == fields


@pytest.mark.parametrize("body", [[], "text", 7, None])
def test_a_body_that_is_no_object_is_refused(admin: Operator, body: Any) -> None:
    """Also a text that holds JSON."""
    spelt = json.dumps(json.dumps(BODY) if body == "text" else body).encode()

    assert [""] == bad_fields(admin.ask("POST", "/v1/templates", spelt))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"name": NaN}', b'{"name": "a", "name": "b"}', b"[" * 100_000])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_what_is_not_json_is_refused(admin: Operator, method: str, body: bytes) -> None:
    """Before anything is looked at."""
    path = "/v1/templates" if method == "POST" else "/v1/templates/1"

    problem_of(admin.ask(method, path, body), 400, "MALFORMED_JSON")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": "nul\x00"}, ["name"]),
        ({"name": 7, "total_quantity": True}, ["name", "total_quantity"]),
        ({"claim_end": "2026-11-11T00:00:00"}, ["claim_end"]),
        ({"claim_end": BODY["claim_start"], "colour": "red"}, ["claim_end", "colour"]),
        ({"type": None}, ["type"]),
        ({"status": "active"}, ["status"]),
        ({"template_id": "1"}, ["template_id"]),
    ],
)
def test_a_bad_change_is_refused_by_field_and_nothing_moves(
    admin: Operator, change: dict[str, Any], expected: list[str]
) -> None:
    """The draft is as it was."""
    template = admin.created()

    response = admin.ask("PATCH", f"/v1/templates/{template['template_id']}", change)

    assert expected == bad_fields(response)
    assert template == admin.read(template)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("status=new", "status"),
        ("cursor=x", "cursor"),
        ("cursor=-1", "cursor"),
        ("cursor=WzE4NDQ2NzQ0MDczNzA5NTUxNjE2XQ==", "cursor"),  # [2**64]
        ("colour=red", "colour"),
    ],
)
def test_a_bad_query_is_refused_by_field(admin: Operator, query: str, field: str) -> None:
    """As a body is."""
    assert [field] == bad_fields(admin.ask("GET", f"/v1/templates?{query}"))


@pytest.mark.parametrize("template_id", ["1", "abc", "0", "-1", "1.0", "9223372036854775808", "1" * 100])
@pytest.mark.parametrize(
    ("method", "action"),
    [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/publish"), ("POST", "/preheat"), ("GET", "/stats")],
)
def test_what_is_no_identity_is_not_found(admin: Operator, method: str, action: str, template_id: str) -> None:
    """Whatever is asked of it."""
    response = admin.ask(method, f"/v1/templates/{template_id}{action}", {} if method == "PATCH" else None)

    problem_of(response, 404, "TEMPLATE_NOT_FOUND")
