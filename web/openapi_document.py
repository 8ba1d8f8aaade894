"""The published description: what the blueprints say of themselves, and what holds for every operation.

Blueprints describe their bodies and their good answers. Added here, from the views themselves: the key an operation
needs, the ``Idempotency-Key`` header, and the problems it may answer with.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from flask import Flask
from flask_openapi3 import Info, OpenAPI
from werkzeug.routing import Rule

from web.api_description import API_DESCRIPTION
from web.auth import scopes_of
from web.idempotent import HEADER, IDEMPOTENT_VIEW, LONGEST_KEY
from web.path_template import path_template
from web.problem import PROBLEM_TYPE

INFO = Info(title="Coupon Workers", version=version("coupon-workers"), description=API_DESCRIPTION)

BEARER = "bearer"
SECURITY_SCHEMES: dict[str, Any] = {
    BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "A key made by `coupon-workers keys create`; it must have one of the scopes an operation names.",
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

_PROBLEM_ANSWER = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}

_IDEMPOTENCY_PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "The same key and request again are answered with the stored answer, and nothing is done twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"},
}

ALWAYS = (400, 422, 500, 503)
GUARDED = (401, 403)
WITH_BODY = (413, 415)
WRITING = (404, 409, 429)


class DescribedApplication(OpenAPI):
    """A Flask application that publishes what it answers; the document is made once, at first sight."""

    def __init__(self, import_name: str, **options: Any) -> None:
        super().__init__(
            import_name, info=INFO, security_schemes=SECURITY_SCHEMES, doc_ui=False, static_folder=None, **options
        )

    def generate_spec_json(self) -> None:
        """Make the document."""
        super().generate_spec_json()  # type: ignore[no-untyped-call]
        document = self.spec_json
        schemas = document["components"]["schemas"]
        schemas.pop(self.validation_error_model.__name__, None)
        schemas["Problem"] = PROBLEM_SCHEMA
        for rule, method, view in _operations(self):
            operation = document["paths"].get(path_template(rule.rule), {}).get(method)
            if operation is not None:
                _lift_example(operation, schemas)
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
            media["example"] = example


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
        operation["security"] = [{BEARER: []}]
        needed = " or ".join(f"`{scope}`" for scope in sorted(scopes))
        operation["description"] = f"{operation.get('description', '')}\n\nScope: {needed}.".strip()
    if getattr(view, IDEMPOTENT_VIEW, False):
        operation.setdefault("parameters", []).append(_IDEMPOTENCY_PARAMETER)
    statuses = [*ALWAYS, *(GUARDED if scopes else ()), *((404,) if has_parameter else ())]
    statuses += [*(WITH_BODY if "requestBody" in operation else ()), *(() if method == "get" else WRITING)]
    for status in statuses:
        _add_problem(operation["responses"], status)


def _add_problem(responses: dict[str, Any], status: int) -> None:
    """What a blueprint says itself stands; the library's own 422, in a form we never answer, does not."""
    described = responses.get(str(status))
    if described is None or (status == 422 and "application/json" in described.get("content", {})):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": _PROBLEM_ANSWER}
