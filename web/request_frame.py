"""What happens around every request, whatever view it reaches: its id, its line in the log, its time in the metrics.

This wraps the WSGI application instead of hooking into Flask: a hook costs more than all that is done here, and the
view of claims pays for it thousands of times a second. Of that view, what is accepted and what is refused in the day's
work (409, 429) has no line in the log unless the level is DEBUG; nor have probes of health.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from itertools import count
from secrets import token_hex
from time import perf_counter
from typing import Any

from flask import Response

from coupon_workers.runtime.metrics import observe_request
from coupon_workers.runtime.structured_log import bind, clear, get_logger
from web.path_template import path_template
from web.problem import problem

Environ = dict[str, Any]
Headers = list[tuple[str, str]]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

REQUEST_ID = "coupon_workers.request_id"
"""Where the environment of a request holds its id."""

_USABLE_ID = re.compile(r"[!-~]{1,128}")
"""A caller's own id is kept when it is 1 to 128 visible ASCII characters; another is made otherwise."""

HOT_PATH = "/v1/claims"
HOT_ENDPOINT = "POST /v1/claims"

_PROBES = frozenset({"/livez", "/readyz"})
"""Asked every few seconds by whatever watches."""

_LOGGER = "web.access"
log = get_logger(_LOGGER)


class RequestFrame:
    """A WSGI application around ``application``. Make it after a fork: its request ids carry a mark of the process."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._mark = token_hex(8)
        self._count = count(1)
        self._tells_all = logging.getLogger(_LOGGER).isEnabledFor(logging.DEBUG)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        started_s = perf_counter()
        request_id = environ.get("HTTP_X_REQUEST_ID")
        if request_id is None or not _USABLE_ID.fullmatch(request_id):
            request_id = f"{self._mark}-{next(self._count):x}"
        environ[REQUEST_ID] = request_id

        if environ["PATH_INFO"] == HOT_PATH and environ["REQUEST_METHOD"] == "POST":

            def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
                headers.append(("X-Request-Id", request_id))
                if self._tells_all or (status > "4" and status[:3] not in ("409", "429")):
                    self._log_claim(request_id, int(status[:3]), started_s)
                return start_response(status, headers, exc_info)

            answer = self._application(environ, start)
            try:
                # Granian sends a list in one piece; any other iterable goes through a channel of its own.
                return [b"".join(answer)]
            finally:
                close = getattr(answer, "close", None)
                if close is not None:
                    close()
                observe_request((HOT_ENDPOINT, perf_counter() - started_s))
        return self._logged(environ, start_response, request_id, started_s)

    def _log_claim(self, request_id: str, status_code: int, started_s: float) -> None:
        """A line about an answer of the hot view, which binds nothing."""
        tell = log.info if status_code >= 400 and status_code not in (409, 429) else log.debug
        taken_ms = round((perf_counter() - started_s) * 1000, 1)
        tell("request", request_id=request_id, method="POST", path=HOT_PATH, status=status_code, ms=taken_ms)

    def _logged(
        self, environ: Environ, start_response: StartResponse, request_id: str, started_s: float
    ) -> Iterable[bytes]:
        status_code, endpoint = 500, "unmatched"

        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            nonlocal status_code, endpoint
            # Flask takes its request out of the environment when the answer is under way: look now.
            status_code, endpoint = int(status[:3]), _endpoint(environ)
            headers.append(("X-Request-Id", request_id))
            return start_response(status, headers, exc_info)

        bind(request_id=request_id)
        try:
            return (_refusal(environ) or self._application)(environ, start)
        finally:
            taken_s = perf_counter() - started_s
            observe_request((endpoint, taken_s))
            # What went well is in the metrics, and what was changed in the history of what it changed.
            quiet = status_code < 400 or environ["PATH_INFO"] in _PROBES
            if self._tells_all or not quiet:
                tell = log.debug if quiet else log.info
                tell(
                    "request",
                    method=environ["REQUEST_METHOD"],
                    path=environ["PATH_INFO"].encode("latin-1", "replace").decode("utf-8", "replace"),
                    status=status_code,
                    ms=round(taken_s * 1000, 1),
                )
            # The thread serves other requests, and the hot view binds nothing that would cover a stale id.
            clear()


def _refusal(environ: Environ) -> Response | None:
    """The answer to an address that is no text, or that holds U+0000, which no store of ours can keep or look for."""
    path = environ["PATH_INFO"]
    if "\x00" in path or not _is_utf8(path):
        return problem(404, "NOT_FOUND", "there is no such address")
    if "%00" in environ.get("QUERY_STRING", ""):
        return problem(422, "VALIDATION_FAILED", "the query holds U+0000", errors=[("query", "holds U+0000")])
    return None


def _is_utf8(path: str) -> bool:
    if path.isascii():
        return True
    try:
        path.encode("latin-1").decode()
    except UnicodeError:
        return False
    return True


def _endpoint(environ: Environ) -> str:
    """The route, never the path: the number of routes is bounded."""
    rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
    return f"{environ['REQUEST_METHOD']} {path_template(rule.rule)}" if rule else "unmatched"
