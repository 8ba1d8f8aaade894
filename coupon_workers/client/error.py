"""What goes wrong with a call. One shallow tree: no answer, or a problem (RFC 9457), its class by its status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MEMBERS = frozenset({"type", "title", "status", "code", "detail", "errors"})


class ClientError(Exception):
    """A call did not bring what was asked for.

    ``identity`` is what the call carried: its ``Idempotency-Key`` or its own number. The same call with it again is
    safe. None: the call has none, or changes nothing.
    """

    identity: str | None = None


class NoAnswer(ClientError):  # noqa: N818 - it says what happened
    """No answer came: whether the server acted is not known. The cause is in ``__cause__``."""

    def __init__(self, detail: str, identity: str | None) -> None:
        self.identity = identity
        super().__init__(detail)


class Problem(ClientError):  # noqa: N818 - the word of RFC 9457
    """The server refused, or broke.

    ``code`` is stable, and empty for an answer that is none of ours, as a gateway's. ``errors`` are pairs of a field
    and what is wrong with it; ``evidence`` is what else the problem says, as ``coupon_status``.
    """

    def __init__(
        self, status: int, body: Mapping[str, Any], request_id: str | None = None, retry_after_s: float | None = None
    ) -> None:
        self.status = status
        self.code: str = str(body.get("code") or "")
        self.detail: str = str(body.get("detail") or "")
        self.errors = list(_pairs(body.get("errors")))
        self.evidence = {name: value for name, value in body.items() if name not in _MEMBERS}
        self.problem = dict(body)
        self.request_id = request_id
        self.retry_after_s = retry_after_s
        fields = "".join(f"; {field}: {message}" for field, message in self.errors)
        super().__init__(f"{status} {self.code}: {self.detail}{fields}")


def _pairs(errors: Any) -> Iterator[tuple[str, str]]:
    """A gateway's own problem may have ``errors`` of another shape: there is nothing in them for us."""
    for error in errors if isinstance(errors, list) else ():
        if isinstance(error, dict) and "field" in error and "message" in error:
            yield str(error["field"]), str(error["message"])


class InvalidRequest(Problem):
    """400, 413, 415, 422: the request breaks a rule."""


class NotAllowed(Problem):
    """401, 403: the key is not known, does not open this, or the user may not have it."""


class NotFound(Problem):
    """404: there is no such thing."""


class Conflict(Problem):
    """409: the present state does not allow it."""


class Gone(Problem):
    """410: it was there, and is not any more."""


class TryLater(Problem):
    """429, 502, 503, 504: not now, and not within the time that the call had."""


_CLASSES: dict[int, type[Problem]] = {
    400: InvalidRequest,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: TryLater,
    502: TryLater,
    503: TryLater,
    504: TryLater,
}


def problem_class(status: int) -> type[Problem]:
    """The class of a problem with this status."""
    return _CLASSES.get(status, Problem)
