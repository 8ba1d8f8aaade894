"""The published description is valid, complete, and true: what the server answers is what it says."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import Any

import pytest
import schemathesis
from flask_openapi3 import OpenAPI
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from openapi_spec_validator import validate
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from coupon_workers.access.api_key import create_key
from coupon_workers.access.principal import SCOPES
from coupon_workers.claiming.claim_request import read_claim
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template import TemplateBody
from tests.tidy.checkout import ROOT
from web.described_example import NAME
from web.problem_code import PROBLEM_CODES

EXAMPLES = 8
"""Of valid requests, and as many of broken ones, for each operation: seconds, not minutes."""

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

UNDESCRIBED = {"/", "/openapi.json", "/docs", "/docs/", "/docs/<path:file>"}
"""For people who look around: the document is about what a program calls."""


@pytest.fixture
def document(app: OpenAPI) -> dict[str, Any]:
    """The document as a client gets it."""
    body: dict[str, Any] = app.test_client().get("/openapi.json").get_json()
    return body


def _operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    """OpenAPI 3.1, by its own schema, without a reference into nowhere."""
    validate(document)

    assert document["openapi"].startswith("3.1")


def test_every_address_is_described(app: OpenAPI, document: dict[str, Any]) -> None:
    """A new view cannot be forgotten, nor an old one stay behind."""
    served = {
        f"{method} {_path(rule.rule)}"
        for rule in app.url_map.iter_rules()
        if rule.rule not in UNDESCRIBED and not rule.rule.startswith("/console")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }

    assert served == set(_operations(document))


def _path(rule: str) -> str:
    return re.sub(r"<(?:[^:>]+:)?([^>]+)>", r"{\1}", rule)


def test_every_operation_tells_its_key_and_its_problems(document: dict[str, Any]) -> None:
    """All but health need a bearer key with a scope that is named; every error answer is a problem."""
    for name, operation in _operations(document).items():
        is_open = name in ("GET /livez", "GET /readyz")
        scopes = {scope for wanted in operation.get("security", []) for scope in wanted["bearer"]}
        assert scopes <= set(SCOPES) and bool(scopes) != is_open, name
        assert is_open or {"401", "403"} <= set(operation["responses"]), name
        assert operation["summary"], name
        for status, answer in operation["responses"].items():
            if int(status) >= 400 and name != "GET /readyz":
                assert ["application/problem+json"] == list(answer["content"]), (name, status)


NO_OPERATION_S = {"BAD_REQUEST", "METHOD_NOT_ALLOWED"}
"""Codes of requests that reach no operation."""

SAID_OF_OTHERS = {
    "POST /v1/templates/{template_id}/pause": {"PAUSED"},  # why claims are rejected
    "POST /v1/order-events": {"ORDER_BROKEN"},  # why an event waits
}
"""Words in descriptions that are no codes of the operation's own answers."""


def test_a_code_that_is_described_is_one_that_is_answered(document: dict[str, Any]) -> None:
    """Each word of the table stands in the code that answers it, and some operation may answer it."""
    sources = [path for folder in ("coupon_workers", "web") for path in (ROOT / folder).rglob("*.py")]
    words = {
        word
        for path in sources
        if path.name != "problem_code.py"
        for word in re.findall(r'"([A-Z][A-Z0-9_]+)"', re.sub(r"@refuses\([^)]*\)", "", path.read_text()))
    }

    described = {code for codes in _codes(document).values() for code in codes}

    assert set() == set(PROBLEM_CODES) - words
    assert set(PROBLEM_CODES) - NO_OPERATION_S == described


def test_a_code_that_is_spoken_of_is_one_of_the_operation_s(document: dict[str, Any]) -> None:
    """The words of a description agree with what it lists."""
    codes = _codes(document)

    for name, operation in _operations(document).items():
        spoken = set(re.findall(r"`([A-Z][A-Z_]+)`", operation["description"])) & set(PROBLEM_CODES)
        assert spoken - SAID_OF_OTHERS.get(name, set()) <= codes[name], name


def _codes(document: dict[str, Any]) -> dict[str, set[str]]:
    return {
        name: {
            code
            for answer in operation["responses"].values()
            for content in answer.get("content", {}).values()
            for code in content.get("examples", {})
            if code.isupper()
        }
        for name, operation in _operations(document).items()
    }


DRAW = "POST /v1/lotteries/{lottery_id}/draws"
WITHOUT_KEY = ("POST /v1/claims", "POST /v1/claims/batch", "POST /v1/quotes", "POST /v1/codes/exchange", DRAW)


def test_every_write_but_claims_takes_an_idempotency_key(document: dict[str, Any]) -> None:
    """API.md, Idempotency. A claim, a draw and an exchange have a request id of their own; a quote and a look-up
    write nothing."""
    for name, operation in _operations(document).items():
        if name.startswith("GET ") or name in (*WITHOUT_KEY, "POST /v1/codes/lookup"):
            continue
        headers = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "header"}
        assert "Idempotency-Key" in headers, name


def test_it_tells_what_to_know_before_the_first_call(document: dict[str, Any]) -> None:
    """Keys, ids, money, errors, repetition and pages; and which release it is of."""
    info = document["info"]

    assert version("coupon-workers") == info["version"]
    words = ("Authorization: Bearer", *SCOPES, "minor units", "problem+json", "Idempotency-Key", "next_cursor")
    assert [] == [word for word in words if word not in info["description"]]


def test_it_is_written_for_its_readers(document: dict[str, Any]) -> None:
    """In Markdown, and not as the docstrings it is made of; a summary is a few words."""
    text = json.dumps(document, ensure_ascii=False)

    assert [] == [mark for mark in ("``", "<br/>", "Raises", "API.md", "DESIGN") if mark in text]
    assert [] == [name for name, operation in _operations(document).items() if len(operation["summary"]) > 40]


def test_the_examples_of_bodies_are_good_ones(document: dict[str, Any]) -> None:
    """Whoever sends one as it is shown is understood."""
    operations = _operations(document)
    claim, batch, template = (
        operations[f"POST /v1/{name}"]["requestBody"]["content"]["application/json"]["examples"][NAME]["value"]
        for name in ("claims", "claims/batch", "templates")
    )

    assert read_claim(claim) == read_claim(batch["claims"][0])
    assert template["name"] == TemplateBody.model_validate(template).name


def test_operations_have_names_of_their_own(document: dict[str, Any]) -> None:
    """Generated clients name their methods by them."""
    names = [operation["operationId"] for operation in _operations(document).values()]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_the_server_answers_as_the_document_says(app: OpenAPI, services: Services, mode: GenerationMode) -> None:
    """Valid requests and broken ones, for each operation: no 5xx, and only described statuses, types and shapes."""
    key = create_key(services.engine, name="test", scopes=SCOPES).key
    headers = {"Authorization": f"Bearer {key}"}
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app)

    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def agrees(case: schemathesis.Case[Any]) -> None:
            if "wait" in (case.query or {}):
                case.query.pop("wait")  # nobody settles here: it would wait in vain
            case.call_and_validate(checks=CHECKS, headers=headers)

        try:
            agrees()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE, operation.label  # nothing in it can be broken
