"""Errors as the outside sees them: ``application/problem+json`` (RFC 9457; API.md, Errors)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus

from flask import Response

from coupon_workers.runtime.clock import rfc3339

PROBLEM_TYPE = "application/problem+json"

FieldErrors = Iterable[tuple[str, str]]
"""Pairs of a field's dotted path and what is wrong with it."""

EXACT_INTEGER = 2**53
"""From here on an integer is not exact in every JSON reader: it is answered as text (API.md, Conventions)."""

RETRY_AFTER_S = 1
"""What 429 and 503 advise when nothing better is known: the time in which bells, leases and caches mend."""


class ProblemError(Exception):
    """A refusal raised from anywhere in a view; the application answers it as a problem."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: FieldErrors = (),
        headers: Mapping[str, str] | None = None,
        **evidence: object,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.evidence = evidence
        super().__init__(detail)

    def response(self) -> Response:
        """The answer this refusal stands for."""
        return problem(
            self.status, self.code, self.detail, errors=self.errors, headers=self.headers, evidence=self.evidence
        )


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: FieldErrors = (),
    headers: Mapping[str, str] | None = None,
    evidence: Mapping[str, object] | None = None,
) -> Response:
    """An answer with the members ``type``, ``title``, ``status``, ``code``, ``detail``, ``errors`` and the evidence.

    ``code`` is stable and in upper case. 429 and 503 carry ``Retry-After``, in seconds, whether named or not.
    """
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "errors": [{"field": field, "message": message} for field, message in errors],
    }
    for name, value in (evidence or {}).items():
        body.setdefault(name, plain(value))
    response = Response(json.dumps(body, separators=(",", ":")), status, content_type=PROBLEM_TYPE)
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
    response.headers.update(headers or {})
    return response


def plain(value: object) -> object:
    """A value as JSON knows it: instants in UTC with Z, large integers as text, whatever else as its text."""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= EXACT_INTEGER:
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
