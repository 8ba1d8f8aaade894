"""What happens around every request, whatever view it reaches: its id, its line in the log, its time in the metrics.

This wraps the WSGI application instead of hooking into Flask: a hook costs more than all that is done here, and the
view of claims pays for it thousands of times a second. That view alone has no line in the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import count
from secrets import token_hex
from time import perf_counter
from typing import Any

from coupon_workers.runtime.metrics import observe_request
from coupon_workers.runtime.structured_log import bind, clear, get_logger

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

REQUEST_ID = "coupon_workers.request_id"
"""Where the environment of a request holds its id."""

_USABLE_ID = re.compile(r"[!-~]{1,128}")
"""A caller's own id is kept when it is 1 to 128 visible ASCII characters; another is made otherwise."""

HOT_PATH = "/v1/claims"
HOT_ENDPOINT = "POST /v1/claims"

log = get_logger("web.access")


class RequestFrame:
    """A WSGI application around ``application``. Make it after a fork: its request ids carry a mark of the process."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._mark = token_hex(8)
        self._count = count(1)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        started_s = perf_counter()
        request_id = environ.get("HTTP_X_REQUEST_ID")
        if request_id is None or not _USABLE_ID.fullmatch(request_id):
            request_id = f"{self._mark}-{next(self._count):x}"
        environ[REQUEST_ID] = request_id

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers.append(("X-Request-Id", request_id))
            environ["coupon_workers.status"] = status
            return start_response(status, headers, exc_info)

        if environ["PATH_INFO"] == HOT_PATH and environ["REQUEST_METHOD"] == "POST":
            answer = self._application(environ, start)
            observe_request((HOT_ENDPOINT, perf_counter() - started_s))
            return answer
        return self._logged(environ, start, started_s)

    def _logged(self, environ: Environ, start: StartResponse, started_s: float) -> Iterable[bytes]:
        bind(request_id=environ[REQUEST_ID])
        try:
            answer = self._application(environ, start)
            taken_s = perf_counter() - started_s
            observe_request((_endpoint(environ), taken_s))
            log.info(
                "request",
                method=environ["REQUEST_METHOD"],
                path=environ["PATH_INFO"].encode("latin-1", "replace").decode("utf-8", "replace"),
                status=int(environ["coupon_workers.status"][:3]),
                ms=round(taken_s * 1000, 1),
            )
            return answer
        finally:
            # The thread serves other requests, and the hot view binds nothing that would cover a stale id.
            clear()


def _endpoint(environ: Environ) -> str:
    """The route, never the path: the number of routes is bounded."""
    request = environ.get("werkzeug.request")
    rule = request and request.url_rule
    return f"{environ['REQUEST_METHOD']} {rule.rule}" if rule else "unmatched"
