"""Who is shown what: a session by cookie instead of a key in a header, and proof that a write was meant.

A write is believed when the browser says that one of our own pages sends it, and when it carries its session's token:
in a field of the form, in the header ``X-Form-Token``, or, where the body is a file, in the address.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import urlsplit

from flask import g, redirect, request, url_for

from coupon_workers.access.console_session import ConsoleSession, find_session
from coupon_workers.access.principal import Scope
from coupon_workers.audit.operator import Operator, acting_as
from web.auth import open_to_all
from web.console.language import gettext
from web.console.rendering import render
from web.context import PRINCIPAL, services
from web.problem import ProblemError
from web.request_frame import REQUEST_ID

View = TypeVar("View", bound=Callable[..., Any])

COOKIE = "cw_console"
TOKEN_FIELD = "form_token"
TOKEN_HEADER = "X-Form-Token"

DATA = "/console/data/"
"""Addresses that scripts ask by themselves: such a question is no activity of a person."""

SHOWN_TO = "__shown_to__"

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def shown_to(*scopes: Scope) -> Callable[[View], View]:
    """Show a page to whoever is logged in by a key with one of ``scopes``, and to nobody else.

    To the guard of API keys the view is open: its own stands around it here.
    """

    def mark(view: View) -> View:
        @wraps(view)
        def guarded(**arguments: Any) -> Any:
            session = current_session()
            if session is None:
                return _ask_to_log_in()
            g.visitor = session
            if session.principal.scopes.isdisjoint(scopes):
                return render("refused.html", 403, needed=sorted(scopes))
            if request.method not in SAFE:
                check_meant(session.form_token)
            caller = session.principal
            request.environ[PRINCIPAL] = caller
            with acting_as(Operator(caller.key_id, caller.name, request.environ.get(REQUEST_ID))):
                return view(**arguments)

        setattr(guarded, SHOWN_TO, frozenset(scopes))
        return open_to_all(guarded)  # type: ignore[return-value]  # the same arguments and the same answers

    return mark


def current_session() -> ConsoleSession | None:
    """The session of this request, if it has one that goes on. Raises ``StoreUnavailable``."""
    token = request.cookies.get(COOKIE)
    if not token:
        return None
    return find_session(services(), token, renew=not request.path.startswith(DATA))


def check_origin() -> None:
    """Raises ``ProblemError`` 403 for what a page of another site has a browser send."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    origin = request.headers.get("Origin")
    if site not in ("same-origin", "none") or (origin is not None and urlsplit(origin).netloc != request.host):
        raise ProblemError(403, "FOREIGN_FORM", gettext("This was sent from another site, and nothing was done."))


def check_meant(form_token: str) -> None:
    """Raises ``ProblemError`` 403 for a write that does not come from a page of this session."""
    check_origin()
    given = request.headers.get(TOKEN_HEADER)
    if given is None:
        fields = request.args if request.mimetype == "multipart/form-data" else request.form
        given = fields.get(TOKEN_FIELD, "")
    if not hmac.compare_digest(given.encode(), form_token.encode()):
        raise ProblemError(403, "STALE_FORM", gettext("This page is from an earlier session. Load it again."))


def _ask_to_log_in() -> Any:
    if request.path.startswith(DATA):
        raise ProblemError(401, "LOGGED_OUT", "the session is over; log in again")
    target = request.full_path.rstrip("?") if request.method in SAFE else None
    return redirect(url_for("console.login", next=target), 303)
