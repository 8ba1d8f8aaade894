"""Keeps what goes between a client and the application, by operation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from flask import Flask
from werkzeug.exceptions import HTTPException

from coupon_workers.client import Conflict
from tests.support.http_described import check_described
from tests.support.http_reply import Reply
from web.path_template import path_template


@dataclass(frozen=True)
class Exchange:
    """One request and its answer; bodies that are no JSON are None."""

    operation: str
    asked: Any
    status: int
    answered: Any


class Recorder:
    """The exchanges so far, in order."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def over(self, app: Flask) -> httpx.BaseTransport:
        """A way to ``app`` in this process."""
        return _Recording(app, self.exchanges)

    def bear(self, call: Callable[[], Any]) -> None:
        """A call that the present state may refuse."""
        try:
            call()
        except Conflict:
            return

    def examples(self) -> dict[str, Any]:
        """The first request of each operation that was accepted, and the first answer of each status; lists cut."""
        found: dict[str, Any] = {}
        for exchange in self.exchanges:
            if exchange.status < 400 and exchange.answered is not None:
                example = found.setdefault(exchange.operation, {"asked": None, "answered": {}})
                example["asked"] = example["asked"] or _without_secrets(exchange.asked)
                example["answered"].setdefault(str(exchange.status), _without_secrets(exchange.answered))
        return dict(sorted(found.items()))


MOST_ITEMS = 2
SECRETS = {"key": "cw_…", "secret": "whsec_…"}
"""Shown once to whoever asked for them, and to nobody in an example."""


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: SECRETS[name] if name in SECRETS and isinstance(item, str) else _without_secrets(item)
            for name, item in value.items()
        }
    return [_without_secrets(item) for item in value[:MOST_ITEMS]] if isinstance(value, list) else value


class _Recording(httpx.BaseTransport):
    def __init__(self, app: Flask, exchanges: list[Exchange]) -> None:
        self._app = app
        self._wsgi = httpx.WSGITransport(app=app.wsgi_app)
        self._exchanges = exchanges

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Pass it on, hold the answer against the description, and keep both."""
        response = self._wsgi.handle_request(request)
        body = response.read()
        reply = Reply(response.status_code, dict(response.headers), body)
        check_described(request.method, request.url.raw_path.decode(), reply)
        self._exchanges.append(
            Exchange(self._operation(request), _json(request.read()), response.status_code, _json(body))
        )
        return response

    def _operation(self, request: httpx.Request) -> str:
        try:
            rule, _ = self._app.url_map.bind("shop").match(request.url.path, request.method, return_rule=True)
        except HTTPException:
            return f"{request.method} {request.url.path}"
        return f"{request.method} {path_template(rule.rule)}"


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
