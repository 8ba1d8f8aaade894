"""Logging in by a key, logging out, choosing a language; and where to begin."""

from __future__ import annotations

from typing import Any

from flask import redirect, request, url_for
from werkzeug import Response

from coupon_workers.access.console_session import LONGEST_MS, end_session, open_session
from coupon_workers.access.login_limit import charge_login, refund_login
from coupon_workers.access.principal import Principal, Scope
from coupon_workers.errors import NotFound, TooManyTries
from web.auth import open_to_all
from web.console.blueprint import console
from web.console.guard import COOKIE, check_origin, current_session, shown_to
from web.console.language import COOKIE as LANGUAGE_COOKIE
from web.console.language import LANGUAGES, gettext
from web.console.page_table import pages_for
from web.console.rendering import render
from web.console.word import reason_of
from web.context import principal, services, web_of_app
from web.trailing_slash import without_slash

YEAR_S = 31_536_000


@console.get("")
@console.get("/")
@shown_to(Scope.ADMIN, Scope.OPS)
def start() -> Response:
    """The first page that the key is shown."""
    return redirect(url_for(f"console.{pages_for(principal().scopes)[0].endpoint}"), 303)


@console.get("/login")
@open_to_all
def login() -> Any:
    """The form. Whoever is in already is led on."""
    if current_session() is not None:
        return redirect(_next(), 303)
    return render("login.html", error=None, next=_next())


@console.post("/login")
@open_to_all
def log_in() -> Any:
    """Verify the key and open a session; a wrong key uses up one of the address's tries."""
    check_origin()
    address = request.remote_addr or ""
    try:
        charge_login(services(), address)
    except TooManyTries as error:
        return render("login.html", 429, error=reason_of(error), next=_next())
    caller = web_of_app().keys.verify(request.form.get("key", "").strip())
    problem = _problem_of(caller)
    if caller is None or problem:
        return render("login.html", 401, error=problem, next=_next())
    refund_login(services(), address)
    response = redirect(_next(), 303)
    token = open_session(services(), caller.key_id)
    _set_cookie(response, COOKIE, token, LONGEST_MS // 1000, httponly=True)
    return response


def _problem_of(caller: Principal | None) -> str | None:
    if caller is None:
        return gettext("This is no valid key. Keys begin with cw_ and are shown once, when they are made.")
    if caller.signed:
        return gettext("This key signs its requests: a program uses it, not a person.")
    if caller.scopes.isdisjoint({Scope.ADMIN, Scope.OPS}):
        return gettext("This key opens no page here: it needs the scope admin or ops.")
    return None


@console.post("/logout")
@shown_to(Scope.ADMIN, Scope.OPS)
def log_out() -> Response:
    """End the session, here and in Redis."""
    end_session(services(), request.cookies[COOKIE])
    response = redirect(url_for("console.login"), 303)
    response.delete_cookie(COOKIE, path="/console")
    return response


@console.post("/language")
@open_to_all
def choose_language() -> Response:
    """Remember the language in a cookie, and come back."""
    check_origin()
    response = redirect(_next(), 303)
    if request.form.get("language") in LANGUAGES:
        _set_cookie(response, LANGUAGE_COOKIE, request.form["language"], YEAR_S, httponly=True)
    return response


@console.get("/<path:rest>")
@shown_to(Scope.ADMIN, Scope.OPS)
def nowhere(rest: str) -> Any:
    """No such page, said in the console's own words; with a slash at its end it may be one without."""
    if (bare := without_slash()) is not None:
        return bare
    raise NotFound("NOT_FOUND", gettext("There is no such page."))


def _next() -> str:
    """Where to go on: a page of the console, and nowhere else."""
    target = request.values.get("next", "")
    inside = target.startswith(("/console/", "/console?")) and "\\" not in target and target.isprintable()
    return target if inside and "/login" not in target else url_for("console.start")


def _set_cookie(response: Response, name: str, value: str, most_s: int, *, httponly: bool) -> None:
    secure = request.is_secure or request.headers.get("X-Forwarded-Proto") == "https"
    response.set_cookie(
        name, value, max_age=most_s, path="/console", httponly=httponly, samesite="Strict", secure=secure
    )
