"""The published description: what the blueprints say of themselves, and what holds for every operation.

Blueprints describe their bodies and their good answers. Added here, from the views themselves: the key an operation
needs, the ``Idempotency-Key`` header, and the problems it may answer with.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from importlib.metadata import version
from itertools import groupby
from operator import itemgetter
from typing import Any

from flask import Flask
from flask_openapi3 import APIBlueprint, Info, OpenAPI
from werkzeug.routing import Rule

from web.api_description import API_DESCRIPTION
from web.auth import scopes_of
from web.described_example import add_examples, named
from web.idempotent import HEADER, IDEMPOTENT_VIEW, LONGEST_KEY
from web.late_rule import LateRule
from web.path_template import path_template
from web.problem import PROBLEM_TYPE
from web.problem_code import PROBLEM_CODES, problems_of
from web.upload import FORM_TYPE

INFO = Info(title="Coupon Workers", version=version("coupon-workers"), description=API_DESCRIPTION)

BEARER = "bearer"
SECURITY_SCHEMES: dict[str, Any] = {
    BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "A key made by `coupon-workers keys create`, with one of the scopes that an operation names.",
    }
}

PROBLEM_SCHEMA = {
    "type": "object",
    "description": "RFC 9457. `code` is stable and in upper case; members beside these are evidence of the refusal.",
    "required": ["type", "title", "status", "code", "detail", "errors"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "pattern": "^[A-Z][A-Z0-9_]*$"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}

_PROBLEM = "#/components/schemas/Problem"

_HEADERS: dict[str, Any] = {
    "X-Request-Id": {"description": "leads to the request in the logs", "schema": {"type": "string"}},
    "Retry-After": {"description": "seconds", "schema": {"type": "integer", "minimum": 1}},
}
_PATIENT = (429, 503)
"""Statuses that come with ``Retry-After``."""

_IDEMPOTENCY_PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "The same key and request again are answered with the stored answer, and nothing is done twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"},
}

ALWAYS = ("VALIDATION_FAILED", "INTERNAL_ERROR", "STORE_UNAVAILABLE")
GUARDED = ("UNAUTHENTICATED", "INVALID_KEY", "INVALID_SIGNATURE", "FORBIDDEN")
ADDRESSED = ("NOT_FOUND",)
READING = ("MALFORMED_JSON", "INCOMPLETE_BODY", "BODY_TOO_LARGE")
"""Of a body; one that is sent where none is described is read all the same, to tell two requests apart."""

IDEMPOTENT = ("IN_PROGRESS", "IDEMPOTENCY_MISMATCH", "NO_IDENTITY")
OF_A_FORM = ("MALFORMED_FORM",)


class DescribedApplication(OpenAPI):
    """A Flask application that publishes what it answers; the document is made once, at first sight."""

    url_rule_class = LateRule

    def __init__(self, import_name: str, **options: Any) -> None:
        super().__init__(
            import_name, info=INFO, security_schemes=SECURITY_SCHEMES, doc_ui=False, static_folder=None, **options
        )

    def register_api(self, api: APIBlueprint, **options: Any) -> None:
        """As the library does; but an address of two blueprints has the methods of both."""
        before = dict(self.paths)
        super().register_api(api, **options)
        for path in before.keys() & api.paths.keys():
            methods = {method: getattr(api.paths[path], method) for method in api.paths[path].model_fields_set}
            self.paths[path] = before[path].model_copy(update=methods)

    def generate_spec_json(self) -> None:
        """Make the document."""
        super().generate_spec_json()  # type: ignore[no-untyped-call]
        document = self.spec_json
        schemas = document["components"]["schemas"]
        schemas.pop(self.validation_error_model.__name__, None)
        schemas["Problem"] = PROBLEM_SCHEMA
        document["components"]["examples"] = {code: _example(code) for code in PROBLEM_CODES}
        document["components"]["headers"] = _HEADERS
        for rule, method, view in _operations(self):
            operation = document["paths"].get(path_template(rule.rule), {}).get(method)
            if operation is not None:
                _lift_example(operation, schemas)
                add_examples(f"{method.upper()} {path_template(rule.rule)}", operation)
                _complete(operation, view, method, has_parameter=bool(rule.arguments))
        _spell_as_markdown(document)


def _operations(app: Flask) -> Iterator[tuple[Rule, str, Any]]:
    for rule in app.url_map.iter_rules():
        for method in rule.methods or ():
            yield rule, method.lower(), app.view_functions[rule.endpoint]


def _lift_example(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """A body's example stands beside its schema, where OpenAPI 3.1 wants it; the library lets no model say it there."""
    for media in operation.get("requestBody", {}).get("content", {}).values():
        schema = media["schema"]
        example = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema).pop("example", None)
        if example is not None:
            media["examples"] = named(example)


def _spell_as_markdown(part: Any) -> None:
    """Descriptions come from docstrings, which mark code with two backticks, and the library marks their line ends."""
    if isinstance(part, list):
        for item in part:
            _spell_as_markdown(item)
    elif isinstance(part, dict):
        for name, item in part.items():
            if isinstance(item, str) and name in ("description", "summary"):
                part[name] = item.replace("``", "`").replace("<br/><br/>", "\n\n").replace("<br/>", " ")
            else:
                _spell_as_markdown(item)


def _complete(operation: dict[str, Any], view: Any, method: str, *, has_parameter: bool) -> None:
    scopes = scopes_of(view) or frozenset()
    if scopes:
        operation["security"] = [{BEARER: [scope]} for scope in sorted(scopes)]
        needed = " or ".join(f"`{scope}`" for scope in sorted(scopes))
        operation["description"] = f"{operation.get('description', '')}\n\nScope: {needed}.".strip()
    is_idempotent = getattr(view, IDEMPOTENT_VIEW, False)
    if is_idempotent:
        operation.setdefault("parameters", []).append(_IDEMPOTENCY_PARAMETER)
    codes = [*ALWAYS, *(GUARDED if scopes else ()), *(ADDRESSED if has_parameter else ())]
    body = operation.get("requestBody", {}).get("content", {})
    codes += [*(READING if body or is_idempotent else ()), *(IDEMPOTENT if is_idempotent else ())]
    codes += [*(("UNSUPPORTED_MEDIA_TYPE",) if body else ()), *(OF_A_FORM if FORM_TYPE in body else ())]
    problems = {(PROBLEM_CODES[code].status, code) for code in codes} | problems_of(view)
    for status, found in groupby(sorted(problems), key=itemgetter(0)):
        _add_problem(operation["responses"], status, [code for _, code in found])


def _add_problem(responses: dict[str, Any], status: int, codes: list[str]) -> None:
    """What a blueprint says itself stands; the library's own 422, in a form we never answer, does not."""
    described = responses.get(str(status))
    if described is None or (status == 422 and "application/json" in described.get("content", {})):
        content = {
            "schema": {"allOf": [{"$ref": _PROBLEM}, {"properties": {"code": {"enum": codes}}}]},
            "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
        }
        responses[str(status)] = {
            "description": "; ".join(f"`{code}`: {PROBLEM_CODES[code].meaning}" for code in codes),
            "headers": {
                name: {"$ref": f"#/components/headers/{name}"}
                for name in _HEADERS
                if name != "Retry-After" or status in _PATIENT
            },
            "content": {PROBLEM_TYPE: content},
        }


def _example(code: str) -> dict[str, Any]:
    """A problem with this code, as it is answered but for what it says of the request at hand."""
    status, meaning = PROBLEM_CODES[code]
    errors = [{"field": "user_id", "message": "is required"}] if code == "VALIDATION_FAILED" else []
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code}
    return {"summary": code, "value": {**body, "detail": meaning, "errors": errors}}
