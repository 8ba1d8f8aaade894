"""One attempt of a call: the request as it is sent, signed where the key demands it, and what came back."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any

import httpx

from coupon_workers.client.error import Problem, problem_class

PROBLEM_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Call:
    """A request, the same in every attempt. ``identity``: by it the server knows one attempt from another call."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    identity: str | None = None
    is_repeatable: bool = False
    waits_s: float = 0.0
    """How long the server was asked to wait with its answer."""


class Line:
    """The way to a server, for the holder of ``key``; ``signed``: the key demands signed requests."""

    def __init__(self, http: httpx.Client, key: str, *, signed: bool) -> None:
        self._http = http
        self._key = key
        self._signed = signed

    def send(self, call: Call, timeout_s: float) -> httpx.Response:
        """One attempt. Raises ``Problem`` for an answer from 400 on, ``httpx.TransportError`` for none."""
        request = self._http.build_request(
            call.method,
            call.path,
            params=call.query or None,
            headers={**call.headers, "Authorization": f"Bearer {self._key}"},
            content=call.body or None,
            timeout=timeout_s + call.waits_s,
        )
        if self._signed:
            request.headers.update(_signature(self._key, request, call.body))
        response = self._http.send(request)
        if response.status_code >= 400:
            raise _problem(response)
        return response


def _signature(key: str, request: httpx.Request, body: bytes) -> dict[str, str]:
    """Of each attempt anew: a nonce is taken once (API guide, Keys)."""
    query = request.url.query.decode()
    target = f"{request.url.path}?{query}" if query else request.url.path
    now, nonce = str(int(time.time())), token_urlsafe(18)
    lines = (request.method, target, now, nonce, sha256(body).hexdigest())
    secret = sha256(key.encode()).hexdigest().encode()
    signature = hmac.new(secret, "\n".join(lines).encode(), sha256).hexdigest()
    return {"X-Signature-Time": now, "X-Signature-Nonce": nonce, "X-Signature": signature}


def _problem(response: httpx.Response) -> Problem:
    body: Any = None
    if response.headers.get("content-type", "").startswith(PROBLEM_TYPE):
        try:
            body = response.json()
        except ValueError:
            body = None
    if not isinstance(body, dict):
        body = {"detail": response.reason_phrase}
    retry_after = response.headers.get("retry-after", "")
    retry_after_s = float(retry_after) if retry_after.isdecimal() else None  # a gateway's date is not waited for
    status = response.status_code
    return problem_class(status)(status, body, response.headers.get("x-request-id"), retry_after_s)
