"""Somebody with a key who calls the API, through Flask's test client or over the network: the tests read the same."""

from __future__ import annotations

import http.client
import json
import threading
import time
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

from flask import Flask

from tests.support.http_described import check_described
from tests.support.http_reply import Reply

JSON = "application/json"
ANSWER_TIMEOUT_S = 30.0

Headers = dict[str, str]


class Transport(Protocol):
    """Carries a request and brings its answer."""

    def send(self, method: str, path: str, body: bytes | None, headers: Headers) -> Reply:
        """One exchange. Raises ``OSError`` or ``HTTPException`` when no answer comes."""


class FlaskTransport:
    """The application in this process."""

    def __init__(self, app: Flask) -> None:
        self._app = app

    def send(self, method: str, path: str, body: bytes | None, headers: Headers) -> Reply:
        """One exchange, with a client of its own: threads may share this."""
        answer = self._app.test_client().open(path, method=method, data=body, headers=headers)
        return Reply(answer.status_code, {name.lower(): value for name, value in answer.headers}, answer.data)


IDLE_S = 1.0
"""A connection that was not used for longer is not trusted: the front closes idle ones, and may do so just now."""


class NetTransport:
    """A front that listens at ``base_url``, over one connection a thread."""

    def __init__(self, base_url: str) -> None:
        self._address = urlsplit(base_url).netloc
        self._local = threading.local()

    def hang_up(self) -> None:
        """Every thread opens another connection for its next exchange."""
        self._local = threading.local()

    def send(self, method: str, path: str, body: bytes | None, headers: Headers) -> Reply:
        """One exchange; the connection is thrown away after an error."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None or time.monotonic() - self._local.used_s > IDLE_S:
            connection = http.client.HTTPConnection(self._address, timeout=ANSWER_TIMEOUT_S)
            self._local.connection = connection
        self._local.used_s = time.monotonic()
        try:
            # Of a body that is too large the server reads only the beginning, and has answered by then.
            with suppress(BrokenPipeError):
                connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        except (OSError, http.client.HTTPException):
            connection.close()
            self._local.connection = None
            raise


class Caller:
    """One key's holder. ``key`` None: nobody."""

    def __init__(self, transport: Transport, key: str | None) -> None:
        self.transport = transport
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """One request; ``body`` is sent as JSON, or as it is when it is bytes. ``Idempotency_Key="k"`` is a header."""
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        content = {"Content-Type": JSON} if raw is not None else {}
        reply = self.transport.send(method, path, raw, self._headers | content | given)
        check_described(method, path, reply)
        return reply

    def claim(self, template_id: Any, user: Any, request: Any = "r1", **fields: Any) -> Reply:
        """``POST /v1/claims``."""
        return self.ask("POST", "/v1/claims", claim_of(template_id, user, request, **fields))

    def claim_many(self, claims: Any) -> Reply:
        """``POST /v1/claims/batch``."""
        return self.ask("POST", "/v1/claims/batch", {"claims": claims})

    def claimed(self, template_id: Any, user: Any, request: Any = "r1", **fields: Any) -> str:
        """The claim id of a claim that must be accepted."""
        return str(self.claim(template_id, user, request, **fields).ok(202)["claim_id"])

    def read_claim(self, claim_id: Any, wait_s: float | None = None) -> Reply:
        """``GET /v1/claims/{claim_id}``."""
        return self.ask("GET", f"/v1/claims/{claim_id}" + ("" if wait_s is None else f"?wait={wait_s:g}"))

    def wallet(self, user: str, **query: Any) -> Reply:
        """``GET /v1/users/{user}/coupons``."""
        return self.ask("GET", f"/v1/users/{quote(user, safe='')}/coupons{_query(query)}")

    def coupon(self, user: str, coupon_no: Any) -> Reply:
        """``GET /v1/users/{user}/coupons/{coupon_no}``."""
        return self.ask("GET", f"/v1/users/{quote(user, safe='')}/coupons/{coupon_no}")

    def center(self, user: str, **query: Any) -> Reply:
        """``GET /v1/claim-center``."""
        return self.ask("GET", f"/v1/claim-center{_query({'user_id': user} | query)}")


def claim_of(template_id: Any, user: Any, request: Any = "r1", **fields: Any) -> dict[str, Any]:
    """The body of a claim."""
    return {"template_id": template_id, "user_id": user, "request_id": request, **fields}


def _query(query: dict[str, Any]) -> str:
    return f"?{urlencode(query)}" if query else ""
