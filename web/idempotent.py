"""``Idempotency-Key``: a write that is sent again is answered again, not done again (API.md, Idempotency)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from typing import Any, TypeVar

from flask import Response, current_app, make_response, request

from coupon_workers.access.idempotency import (
    Fence,
    InProgress,
    Mismatch,
    StoredAnswer,
    abandon,
    begin,
    finish,
)
from coupon_workers.errors import Busy, StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger
from web.context import principal, services
from web.problem import ProblemError
from web.upload import UPLOAD
from web.upload_form import Upload

log = get_logger("web.idempotent")

View = TypeVar("View", bound=Callable[..., Any])

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
LONGEST_KEY = 255

IDEMPOTENT_VIEW = "__idempotent__"

_SUBJECT_ID = "coupon_workers.subject_id"

NOT_KEPT = frozenset({422, 429})
"""Nothing was done, and the same request may do better later: 5xx likewise, and what is ``Busy``."""


def idempotent(view: View) -> View:
    """Let a write be sent again safely under an ``Idempotency-Key``; without the header it simply runs.

    Put it below the route. The request has been validated and its caller is known when the key is looked at, so a
    body that breaks a rule uses up no key. Answers below 500 are kept, but for those that say "nothing was done, try
    again"; of headers only the content type.

    The view's answer and the row that keeps it are two transactions: when the process dies between them, the next
    request like it runs the view again after ``RUNNING_S``. What a view does must bear that.
    """
    return _idempotent(view, secrets=())


def subject_id() -> int:
    """The identity for what this request makes. Sent again after its process died, it makes the same thing again."""
    allotted: int | None = request.environ.get(_SUBJECT_ID)
    return services().next_id(0) if allotted is None else allotted


def idempotent_but(*secrets: str) -> Callable[[View], View]:
    """As ``idempotent``, with the named members of the answer kept and replayed as null: they are shown once only."""
    return lambda view: _idempotent(view, secrets)


def _idempotent(view: View, secrets: tuple[str, ...]) -> View:
    @wraps(view)
    def replaying(*args: Any, **kwargs: Any) -> Any:
        key = request.headers.get(HEADER)
        if key is None:
            return view(*args, **kwargs)
        _check(key)
        beginning = begin(
            services().engine,
            key_id=principal().key_id,
            idempotency_key=key,
            fingerprint=_fingerprint(),
            subject_id=services().next_id(0),
        )
        if not isinstance(beginning, Fence):
            return _answer_without_running(beginning)
        return _run(beginning, lambda: view(*args, **kwargs), secrets)

    setattr(replaying, IDEMPOTENT_VIEW, True)
    return replaying  # type: ignore[return-value]  # the same arguments and the same answers


def _run(fence: Fence, view: Callable[[], Any], secrets: tuple[str, ...]) -> Response:
    engine = services().engine
    request.environ[_SUBJECT_ID] = fence.subject_id
    busy = False
    try:
        response = make_response(view())
    except Exception as error:  # noqa: BLE001 - the application's handlers turn each into its answer
        busy = isinstance(error, Busy)
        response = make_response(current_app.handle_user_exception(error))
    try:
        if busy or response.status_code >= 500 or response.status_code in NOT_KEPT or response.is_streamed:
            abandon(engine, fence)
        else:
            finish(engine, fence, _to_store(response, secrets))
    except StoreUnavailable as error:
        # The view has answered, and its answer is true: the row's deadline settles the rest.
        log.warning("idempotent answer not kept", status=response.status_code, error=str(error))
    return response


def _to_store(response: Response, secrets: tuple[str, ...]) -> StoredAnswer:
    body = response.get_data(as_text=True)
    if secrets and response.is_json:
        body = json.dumps({**json.loads(body), **dict.fromkeys(secrets)}, separators=(",", ":"))
    return StoredAnswer(response.status_code, body, response.content_type or "")


def _answer_without_running(beginning: StoredAnswer | Mismatch | InProgress) -> Response:
    match beginning:
        case StoredAnswer(status, body, content_type):
            response = Response(body, status, content_type=content_type)
            response.headers[REPLAYED_HEADER] = "true"
            return response
        case Mismatch():
            raise ProblemError(
                422,
                "IDEMPOTENCY_MISMATCH",
                f"this {HEADER} was used for another request",
                errors=[(HEADER, "belongs to a request with another method, path or body")],
            )
        case InProgress(retry_after_s):
            raise ProblemError(
                409,
                "IN_PROGRESS",
                f"the first request with this {HEADER} is still running",
                headers={"Retry-After": str(retry_after_s)},
            )


def _check(key: str) -> None:
    if not 1 <= len(key) <= LONGEST_KEY or not all("!" <= character <= "~" for character in key):
        message = f"must be 1 to {LONGEST_KEY} visible ASCII characters"
        raise ProblemError(422, "VALIDATION_FAILED", f"{HEADER} {message}", errors=[(HEADER, message)])


def _fingerprint() -> bytes:
    """SHA-256 of method, path with query, and body. JSON and forms count by their content, not by their spelling."""
    environ = request.environ
    uploaded: Upload | None = environ.get(UPLOAD)
    body = request.get_data() if uploaded is None else uploaded.digest
    if uploaded is None and body and request.is_json:
        body = json.dumps(request.get_json(), sort_keys=True, separators=(",", ":")).encode()
    head = f"{environ['REQUEST_METHOD']}\n{environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}\n"
    return sha256(head.encode() + body).digest()
