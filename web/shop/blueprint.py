"""The shop's blueprint: its pages, its files, its refusals as pages. Views add themselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, redirect, request, send_from_directory, url_for
from jinja2 import Environment, FileSystemLoader
from werkzeug import Response as AnyResponse
from werkzeug.exceptions import HTTPException

from coupon_workers.errors import CouponWorkersError
from coupon_workers.runtime.clock import rfc3339
from web.auth import open_to_all
from web.console import rendering
from web.console.blueprint import STATUSES, guard_answer
from web.console.language import COOKIE as LANGUAGE_COOKIE
from web.console.language import LANGUAGES, language
from web.console.show import near_time, near_until
from web.console.word import reason_of
from web.context import services
from web.problem import ProblemError
from web.shop.visitor import TOKEN_COOKIE, check_meant, remember, token, user
from web.trailing_slash import without_slash

HERE = Path(__file__).parent

shop = Blueprint("shop", __name__, url_prefix="/shop")
shop.after_request(guard_answer)


@shop.get("/static/<path:file>")
@open_to_all
def static_file(file: str) -> Response:
    """A style or a script."""
    return send_from_directory(HERE / "static", file)


@shop.post("/language")
@open_to_all
def choose_language() -> Any:
    """Remember the language, and come back to the shop."""
    check_meant()
    response = redirect(url_for("shop.front"), 303)
    if request.form.get("language") in LANGUAGES:
        remember(response, LANGUAGE_COOKIE, request.form["language"])
    return response


def page(template: str, http_status: int = 200, /, **shown: Any) -> Response:
    """A page of the shop."""
    around = {
        "user": user(),
        "form_token": token(),
        "lang": language(),
        "LANGUAGES": LANGUAGES,
        "now": rfc3339(services().clock()),
    }
    text = _environment().get_template(template).render(around | shown)
    response = Response(text, http_status, content_type="text/html; charset=utf-8")
    remember(response, TOKEN_COOKIE, token())
    return response


@cache
def _environment() -> Environment:
    """The console's words, and the shop's templates."""
    made = rendering.environment().overlay(loader=FileSystemLoader(HERE / "templates"))
    made.globals = {
        **made.globals,
        "url": lambda endpoint, **values: url_for(f"shop.{endpoint}", **values),
        "time": near_time,
        "until": near_until,
    }
    return made


@shop.get("/", defaults={"rest": ""})
@shop.get("/<path:rest>")
@open_to_all
def nowhere(rest: str) -> AnyResponse:
    """No such page, said in the shop's own words; with a slash at its end it may be one without."""
    return without_slash() or page("nowhere.html", 404)


def status_of(error: CouponWorkersError) -> int:
    """The HTTP status of a refusal."""
    return next(status for kind, status in STATUSES.items() if isinstance(error, kind))


def _refused(error: CouponWorkersError) -> Response:
    return page("refused.html", status_of(error), detail=reason_of(error))


def _problem(error: ProblemError) -> Response:
    return page("refused.html", error.status, detail=error.detail)


def _http(error: HTTPException) -> Any:
    if error.code is None or error.code < 400:
        return error
    return page("refused.html", error.code, detail=error.description or error.name)


for _kind in STATUSES:
    shop.register_error_handler(_kind, _refused)
shop.register_error_handler(ProblemError, _problem)
shop.register_error_handler(HTTPException, _http)
