"""The console's blueprint: its headers, its files, its errors as pages. Views add themselves."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, Response, request, send_from_directory, url_for
from werkzeug.exceptions import HTTPException

from coupon_workers.errors import (
    Conflict,
    CouponWorkersError,
    Gone,
    InvalidInput,
    NotFound,
    StoreUnavailable,
    TooManyTries,
)
from coupon_workers.runtime.structured_log import get_logger
from web.auth import open_to_all
from web.console.guard import DATA
from web.console.language import gettext
from web.console.rendering import STATIC, render
from web.console.word import reason_of
from web.problem import ProblemError, problem
from web.request_frame import REQUEST_ID

log = get_logger("web.console")

console = Blueprint("console", __name__, url_prefix="/console")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

YEAR_S = 31_536_000

STATUSES: dict[type[CouponWorkersError], int] = {
    NotFound: 404,
    Conflict: 409,
    Gone: 410,
    InvalidInput: 422,
    TooManyTries: 429,
    StoreUnavailable: 503,
}


@console.get("/static/<path:file>")
@open_to_all
def static_file(file: str) -> Response:
    """A style, a script or a picture. Its address changes with it."""
    return send_from_directory(STATIC, file, max_age=YEAR_S if request.args.get("v") else 0)


@console.after_request
def guard_answer(response: Response) -> Response:
    """Nothing from elsewhere, nothing framed, nothing kept on the way."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def failed(error: CouponWorkersError) -> Any:
    """The page that says why something was not done, with the way back."""
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    if request.path.startswith(DATA):
        return problem(status, "REFUSED", reason_of(error))
    return _failure(reason_of(error), status)


def _problem_page(error: ProblemError) -> Any:
    return error.response() if request.path.startswith(DATA) else _failure(error.detail, error.status)


def _http_page(error: HTTPException) -> Any:
    if error.code is None or error.code < 400:
        return error
    return _failure(error.description or error.name, error.code)


def _unexpected(error: Exception) -> Any:
    request_id = request.environ.get(REQUEST_ID)
    log.error("unexpected error", request_id=request_id, exc_info=error)
    detail = gettext("Something went wrong here. This leads to it in the logs: %s") % request_id
    return problem(500, "INTERNAL_ERROR", detail) if request.path.startswith(DATA) else _failure(detail, 500)


def _failure(detail: str, status: int) -> Response:
    return render("failure.html", status, detail=detail, title=HTTPStatus(status).phrase, back=_way_back())


def _way_back() -> str:
    came_from = urlsplit(request.referrer or "")
    if came_from.netloc == request.host and came_from.path.startswith("/console"):
        return came_from.path
    return url_for("console.start")


for _error in STATUSES:
    console.register_error_handler(_error, failed)
console.register_error_handler(ProblemError, _problem_page)
console.register_error_handler(HTTPException, _http_page)
console.register_error_handler(Exception, _unexpected)
