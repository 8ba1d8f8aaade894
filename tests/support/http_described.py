"""Holds every answer that the tests see against the published description: its status, and the code of its problem."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

from werkzeug.exceptions import HTTPException

from tests.support.http_reply import PROBLEM, Reply
from web.app import described_application
from web.path_template import path_template

FROM_THE_FRAME = {(404, "NOT_FOUND"), (405, "METHOD_NOT_ALLOWED")}
"""Of addresses that are none, whatever they look like."""


def check_described(method: str, path: str, reply: Reply) -> None:
    """Raises ``AssertionError`` for an answer that the description of its operation does not know."""
    operation = _operation(method, urlsplit(path).path)
    if operation is None:
        return
    name, answers = operation
    assert str(reply.status) in answers, f"{name} answered {reply.status}, which its description does not have"
    if reply.headers.get("content-type") != PROBLEM:
        return
    code = reply.json["code"]
    known = answers[str(reply.status)]["content"].get(PROBLEM, {}).get("examples", {})
    assert code in known or (reply.status, code) in FROM_THE_FRAME, (
        f"{name} answered {reply.status} {code}: name it in @refuses({code!r}) of its view (web/problem_code.py)"
    )


def _operation(method: str, path: str) -> tuple[str, dict[str, Any]] | None:
    adapter, paths = _described()
    try:
        rule, _ = adapter.match(unquote(path), method, return_rule=True)
    except HTTPException:
        return None
    template = path_template(rule.rule)
    operation = paths.get(template, {}).get(method.lower())
    return operation and (f"{method} {template}", operation["responses"])


@cache
def _described() -> tuple[Any, dict[str, Any]]:
    app = described_application()
    app.url_map.merge_slashes = False
    paths: dict[str, Any] = app.api_doc["paths"]
    return app.url_map.bind("localhost"), paths
