"""Who looks around in the shop: a name that was picked, in a cookie, and proof that a write was meant."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from flask import g, redirect, request, url_for
from werkzeug import Response

from coupon_workers.claiming.claim_request import user_id_problem
from web.auth import open_to_all
from web.console.guard import SAFE, check_origin
from web.console.language import gettext
from web.problem import ProblemError

View = TypeVar("View", bound=Callable[..., Any])

NAME_COOKIE = "cw_shop_user"
TOKEN_COOKIE = "cw_shop_token"
TOKEN_FIELD = "form_token"

MOST_S = 86_400
"""A visit's longest, in seconds."""


def for_visitors(view: View) -> View:
    """Show ``view`` to whoever has picked a name; a write carries the token of this browser's cookie."""

    @wraps(view)
    def guarded(**arguments: Any) -> Any:
        if user_id_problem(user()) is not None or not request.cookies.get(TOKEN_COOKIE):
            return redirect(url_for("shop.welcome"), 303)
        if request.method not in SAFE:
            check_meant()
        return view(**arguments)

    return open_to_all(guarded)  # type: ignore[return-value]  # the same arguments and the same answers


def user() -> str:
    """The name that was picked; empty for none."""
    return request.cookies.get(NAME_COOKIE, "")


def token() -> str:
    """What forms of this browser carry: its cookie's, or a new one that the answer sets."""
    if "shop_token" not in g:
        g.shop_token = request.cookies.get(TOKEN_COOKIE) or secrets.token_urlsafe(24)
    return str(g.shop_token)


def check_meant() -> None:
    """Raises ``ProblemError`` 403 for a write that no page of ours sent in this browser."""
    check_origin()
    expected, given = request.cookies.get(TOKEN_COOKIE, ""), request.form.get(TOKEN_FIELD, "")
    if not expected or not hmac.compare_digest(given.encode(), expected.encode()):
        raise ProblemError(403, "STALE_FORM", gettext("This page is from an earlier session. Load it again."))


def remember(response: Response, name: str, value: str) -> None:
    """Keep a cookie of the shop for a day."""
    response.set_cookie(
        name, value, max_age=MOST_S, path="/shop", httponly=True, samesite="Strict", secure=request.is_secure
    )
