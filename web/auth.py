"""Who may call what. A view says which scopes open it; the application refuses to start with one that says nothing.

``require`` only marks the view. ``guard_views`` puts the check around every view, outside of the validation of the
request, so that nobody without a key learns what a valid request looks like.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from flask import Flask, request

from coupon_workers.access.principal import SCOPES, Principal, Scope
from coupon_workers.access.signature import SignatureError, check_signature
from coupon_workers.audit.operator import Operator, acting_as
from web.context import PRINCIPAL, Web, web_of
from web.lean_view import lean
from web.problem import ProblemError
from web.request_frame import REQUEST_ID
from web.upload import body_hash

View = TypeVar("View", bound=Callable[..., Any])

SCOPES_OF_VIEW = "__required_scopes__"

CHALLENGE = 'Bearer realm="coupon-workers"'

OPERATED = frozenset({Scope.ADMIN, Scope.OPS})
"""Scopes whose writes are in the audit log."""


def require(*scopes: str) -> Callable[[View], View]:
    """Open a view to keys that have one of ``scopes`` (storefront, orders, admin, ops), and to nobody else.

    Raises ``ValueError`` for a scope that does not exist or for none at all.
    """
    if not scopes or set(scopes) - set(SCOPES):
        raise ValueError(f"scopes must be some of {', '.join(SCOPES)}")

    def mark(view: View) -> View:
        setattr(view, SCOPES_OF_VIEW, frozenset(scopes))
        return view

    return mark


def open_to_all(view: View) -> View:
    """Open a view without a key: for health, the API's description and the way to them, and nothing else."""
    setattr(view, SCOPES_OF_VIEW, frozenset())
    return view


def scopes_of(view: Callable[..., Any]) -> frozenset[str] | None:
    """The scopes of which a key needs one; empty: open to all; None: nobody has said."""
    return getattr(view, SCOPES_OF_VIEW, None)


def guard_views(app: Flask) -> None:
    """Put the check of the key around every view of ``app``, to which ``attach`` has given its keys.

    Raises ``RuntimeError`` naming a view that has no ``require`` and no ``open_to_all``.
    """
    web = web_of(app)
    for endpoint, view in app.view_functions.items():
        scopes = scopes_of(view)
        if scopes is None:
            raise RuntimeError(f"view {endpoint} names no scope: mark it with require(...)")
        if scopes:
            app.view_functions[endpoint] = _guarded(lean(view), scopes, web)


def _guarded(view: Callable[..., Any], scopes: frozenset[str], web: Web) -> Callable[..., Any]:
    operated = not scopes.isdisjoint(OPERATED)

    @wraps(view)
    def guarded(**arguments: Any) -> Any:
        environ = request.environ
        caller = authenticate(web, environ)
        if scopes.isdisjoint(caller.scopes):
            needed = " or ".join(sorted(scopes))
            raise ProblemError(403, "FORBIDDEN", f"this needs a key with the scope {needed}", scopes=sorted(scopes))
        environ[PRINCIPAL] = caller
        if not operated:
            return view(**arguments)
        with acting_as(Operator(caller.key_id, caller.name, environ.get(REQUEST_ID))):
            return view(**arguments)

    return guarded


def authenticate(web: Web, environ: dict[str, Any]) -> Principal:
    """The caller of a request, by its ``Authorization`` header and, where his key demands it, its signature.

    Raises ``ProblemError`` 401, and ``StoreUnavailable`` when the key is new here and PostgreSQL is away.
    """
    header = environ.get("HTTP_AUTHORIZATION")
    if header is None:
        raise ProblemError(401, "UNAUTHENTICATED", "no key was given", headers={"WWW-Authenticate": CHALLENGE})
    scheme, _, token = header.partition(" ")
    caller = web.keys.verify(token) if scheme.lower() == "bearer" else None
    if caller is None:
        detail = "the key is not valid" if scheme.lower() == "bearer" else "use Authorization: Bearer <key>"
        challenge = f'{CHALLENGE}, error="invalid_token"'
        raise ProblemError(401, "INVALID_KEY", detail, headers={"WWW-Authenticate": challenge})
    if caller.signed:
        _check_signature(web, caller, environ)
    return caller


def _check_signature(web: Web, caller: Principal, environ: dict[str, Any]) -> None:
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    query = environ.get("QUERY_STRING")
    try:
        check_signature(
            web.services,
            caller,
            method=environ["REQUEST_METHOD"],
            target=f"{path}?{query}" if query else path,
            time=environ.get("HTTP_X_SIGNATURE_TIME"),
            nonce=environ.get("HTTP_X_SIGNATURE_NONCE"),
            signature=environ.get("HTTP_X_SIGNATURE"),
            body_hash=body_hash(),
        )
    except SignatureError as error:
        headers = {"WWW-Authenticate": CHALLENGE}
        raise ProblemError(401, "INVALID_SIGNATURE", str(error), headers=headers) from None
