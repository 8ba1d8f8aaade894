"""Every error becomes a problem: one table from the core's exceptions, and from HTTP's own, to answers."""

from __future__ import annotations

from http import HTTPStatus
from math import ceil
from typing import Any

from flask import Flask, Response, request
from pydantic import ValidationError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge

from coupon_workers.errors import (
    ClockWentBack,
    Conflict,
    Gone,
    InvalidInput,
    NotFound,
    StoreUnavailable,
    TooManyTries,
    WorkerNumbersExhausted,
)
from coupon_workers.field_message import field_message
from coupon_workers.runtime.structured_log import get_logger
from web.json_body import MOST_BODY, too_large
from web.problem import ProblemError, problem
from web.request_frame import REQUEST_ID

log = get_logger("web.error")

_CODES = {
    400: "BAD_REQUEST",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "BODY_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
}

_DETAILS = {404: "there is no such address", 405: "this address is not for that method"}


def answer_errors(app: Flask) -> None:
    """Have every error of ``app`` answered as a problem."""
    app.register_error_handler(ProblemError, _problem_error)
    app.register_error_handler(NotFound, _not_found)
    app.register_error_handler(Conflict, _conflict)
    app.register_error_handler(Gone, _gone)
    app.register_error_handler(TooManyTries, _too_many_tries)
    app.register_error_handler(InvalidInput, _invalid_input)
    app.register_error_handler(StoreUnavailable, _store_unavailable)
    app.register_error_handler(ClockWentBack, _no_identity)
    app.register_error_handler(WorkerNumbersExhausted, _no_identity)
    app.register_error_handler(HTTPException, _http_exception)
    app.register_error_handler(Exception, _unexpected)


def validation_problem(error: ValidationError) -> Response:
    """422 for a request that a Pydantic model refuses, each field by its dotted path. What was sent is not repeated."""
    errors = [
        (".".join(map(_segment, part["loc"])), field_message(part))
        for part in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return _invalid(errors)


def _segment(part: int | str) -> str:
    return str(part).encode("utf-8", "replace").decode()


def _invalid(errors: list[tuple[str, str]]) -> Response:
    named = ", ".join(dict.fromkeys(field for field, _ in errors if field))
    detail = f"the request breaks a rule: {named}" if named else "the request breaks a rule"
    return problem(422, "VALIDATION_FAILED", detail, errors=errors)


def _problem_error(error: ProblemError) -> Response:
    return error.response()


def _not_found(error: NotFound) -> Response:
    return problem(404, error.code, str(error))


def _conflict(error: Conflict) -> Response:
    return problem(409, error.code, str(error), evidence=error.evidence)


def _gone(error: Gone) -> Response:
    return problem(410, error.code, str(error), evidence=error.evidence)


def _too_many_tries(error: TooManyTries) -> Response:
    headers = {"Retry-After": str(ceil(error.wait_ms / 1000))}
    return problem(429, "RATE_LIMITED", "too many wrong tries; ask again later", headers=headers)


def _invalid_input(error: InvalidInput) -> Response:
    return _invalid(error.errors)


def _store_unavailable(error: StoreUnavailable) -> Response:
    # Which server, but not what it said: that may hold addresses.
    log.warning("store unavailable", request_id=_request_id(), store=error.store, error=str(error))
    return problem(503, "STORE_UNAVAILABLE", f"{error.store} does not answer; ask again")


def _no_identity(error: ClockWentBack | WorkerNumbersExhausted) -> Response:
    # It mends by itself: another number is leased, or a lease of a process that has ended runs out.
    log.error("no identity to be had", request_id=_request_id(), error=str(error))
    return problem(503, "NO_IDENTITY", "no identity can be given at this moment; ask again")


def _http_exception(error: HTTPException) -> Response:
    if isinstance(error, RequestEntityTooLarge):
        return too_large(request.max_content_length or MOST_BODY).response()
    status = error.code or 500
    headers = {}
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        headers["Allow"] = ", ".join(sorted(error.valid_methods))
    code = _CODES.get(status, HTTPStatus(status).phrase.upper().replace(" ", "_"))
    detail = _DETAILS.get(status) or error.description or HTTPStatus(status).phrase
    return problem(status, code, detail, headers=headers)


def _unexpected(error: Exception) -> Any:
    log.error("unexpected error", request_id=_request_id(), exc_info=error)
    return problem(500, "INTERNAL_ERROR", "something went wrong here; the request's id leads to it in the logs")


def _request_id() -> str | None:
    return request.environ.get(REQUEST_ID)
