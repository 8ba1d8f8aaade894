"""A page's address with a slash at its end, as people type it, leads to the page. Those of the API stay exact."""

from __future__ import annotations

from flask import redirect, request
from werkzeug import Response


def without_slash() -> Response | None:
    """The way to the address without; None when it has none. Its beginning is a page's: it never leads elsewhere."""
    bare = request.path.rstrip("/")
    if bare == request.path:
        return None
    query = request.query_string.decode("latin-1")
    return redirect(f"{bare}?{query}" if query else bare, 308)
