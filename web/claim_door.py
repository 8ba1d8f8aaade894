"""``POST /v1/claims`` as nearly all clients ask it, answered before Flask sees it.

For each request Flask makes two contexts, looks the address up and asks for hooks that nobody has hung up; and it
answers with an iterator, which Granian sends piece by piece. That is more than all the rest of a claim takes of this
process. What is asked plainly is read here by the functions that the view reads it by, and answered in one piece. What
is not goes Flask's way; and what is refused or breaks is told by the same functions and the same table of errors.
"""

from __future__ import annotations

from collections.abc import Iterable

from flask import Flask, Response

from coupon_workers.claiming.claim_request import ClaimRequest, read_claim
from web.auth import scopes_of
from web.claim_front import claim_front_of
from web.claims_api import JSON, decide, refused, told
from web.context import web_of
from web.json_body import parse_object, read_whole
from web.request_frame import REQUEST_ID, Environ, Headers, StartResponse

Answer = tuple[str, Headers, bytes]
"""Status line, headers, body."""

VIEW = "claims.post_claim"

_STATUS_LINES = {200: "200 OK", 202: "202 ACCEPTED"}

_SCHEME = "Bearer "
_MOST_DIGITS = 4
"""Of the length of a body. The largest claim has some hundred bytes, and any limit on bodies is beyond this."""


class ClaimDoor:
    """A WSGI application for the address and method of ``VIEW`` alone, in front of the one that ``app`` has now.

    Make it when ``app`` has its keys and its views.
    """

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._application = app.wsgi_app
        self._keys = web_of(app).keys
        self._scopes = scopes_of(app.view_functions[VIEW]) or frozenset()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        try:
            asked = self._asked(environ)
            answer = None if asked is None else self._decided(asked, environ)
        except Exception as error:  # noqa: BLE001 - the table of errors has a line for each
            answer = self._told_error(error, environ)
        if answer is None:
            return self._application(environ, start_response)
        status, headers, body = answer
        start_response(status, headers)
        return [body]

    def _asked(self, environ: Environ) -> ClaimRequest | None:
        """The claim, when it is asked plainly by whom the view is open to; None, and nothing was read, when not.

        Raises as the view does for a body that is no claim.
        """
        header, length = environ.get("HTTP_AUTHORIZATION"), environ.get("CONTENT_LENGTH")
        if (
            header is None
            or not header.startswith(_SCHEME)
            or length is None
            or not length.isdecimal()
            or len(length) > _MOST_DIGITS
            or environ.get("CONTENT_TYPE") != JSON
        ):
            return None
        caller = self._keys.verify(header[len(_SCHEME) :])
        if caller is None or caller.signed or self._scopes.isdisjoint(caller.scopes):
            return None
        return read_claim(parse_object(read_whole(environ, int(length))))

    def _decided(self, asked: ClaimRequest, environ: Environ) -> Answer:
        decision, status = decide(claim_front_of(self._app), asked, environ[REQUEST_ID])
        if status >= 300:
            return _whole(refused(decision, status))
        body = told(decision, asked).encode()
        return _STATUS_LINES[status], [("Content-Type", JSON), ("Content-Length", str(len(body)))], body

    def _told_error(self, error: Exception, environ: Environ) -> Answer:
        with self._app.request_context(environ):
            return _whole(self._app.make_response(self._app.handle_user_exception(error)))


def _whole(response: Response) -> Answer:
    return response.status, list(response.headers), response.get_data()
