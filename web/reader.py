"""The API's description: ``/openapi.json``, and ``/docs`` to read it, which needs no network (API.md).

The reader is RapiDoc, its script served from the installed package. Two things keep it from asking anybody else: the
page tells it to load no fonts, and the policy sent with the page lets a browser reach only this server. ``/`` leads
here. All are open: they hold no data; and they are not in the document, which is about what a program calls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flask_openapi3_rapidoc
from flask import Blueprint, Response, current_app, send_from_directory

from web.auth import open_to_all
from web.openapi_document import INFO

pages = Blueprint("reader", __name__)

_FILES = Path(flask_openapi3_rapidoc.__file__).parent / "templates" / "rapidoc"

_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Coupon Workers: API</title>
<link rel="icon" href="/docs/images/rapidoc.svg">
<script type="module" src="/docs/js/rapidoc-min.js"></script>
</head>
<body>
<rapi-doc spec-url="/openapi.json" load-fonts="false" render-style="read" show-header="false"
 allow-server-selection="false" persist-auth="false" regular-font="system-ui, sans-serif" mono-font="monospace">
</rapi-doc>
</body>
</html>
"""


@pages.get("/")
@open_to_all
def start() -> dict[str, Any]:
    """Where to go from here."""
    links = {"docs": "/docs", "openapi": "/openapi.json", "livez": "/livez", "readyz": "/readyz"}
    return {"name": INFO.title, "version": INFO.version, "links": links}


@pages.get("/openapi.json")
@open_to_all
def document() -> Any:
    """The OpenAPI 3.1 document."""
    return current_app.api_doc  # type: ignore[attr-defined]  # the application is an OpenAPI


@pages.get("/docs")
@pages.get("/docs/")
@open_to_all
def docs() -> Response:
    """The page that shows the document."""
    return _with_policy(Response(_PAGE, content_type="text/html; charset=utf-8"))


@pages.get("/docs/<path:file>")
@open_to_all
def docs_file(file: str) -> Response:
    """The reader's script and picture, from the installed package."""
    return _with_policy(send_from_directory(_FILES, file, max_age=3600))


def _with_policy(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
