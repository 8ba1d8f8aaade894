"""Calls, and which of them are safe to be sent again.

A call that changes something is sent again only under an identity that it has had since before its first attempt: an
``Idempotency-Key``, or a number of its own in the body (``request_id``, ``payment_no``, ``refund_no``, ``event_id``).
The server does it once, however often it comes. What has no identity is sent once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote

import httpx

from coupon_workers.client.error import NoAnswer, Problem
from coupon_workers.client.exchange import Call, Line
from coupon_workers.client.retry_policy import RetryPolicy

IDEMPOTENCY_KEY = "Idempotency-Key"
JSON_TYPE = "application/json"

PATIENCE = frozenset({429, 502, 503, 504})
"""Statuses after which the same call may be answered otherwise. 500 is a fault that comes again."""

IN_PROGRESS = "IN_PROGRESS"
"""409 with this code: an attempt whose answer was lost is still at work."""

OUR_FAULTS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
"""What was asked cannot be sent: it would fail again."""

LEAST_TIMEOUT_S = 0.001
"""An attempt that begins right before the deadline has a moment; none at all would mean for ever."""

Query = Mapping[str, str | int | float | None]


class Caller:
    """Sends calls over a ``line``, again where that is safe. ``clock`` and ``sleep`` are in seconds; ``draw`` gives a
    number from 0 to 1."""

    def __init__(
        self,
        line: Line,
        policy: RetryPolicy,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        draw: Callable[[], float],
    ) -> None:
        self._line = line
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._draw = draw

    def read(self, path: str, query: Query | None = None, *, waits_s: float = 0.0) -> Any:
        """GET: the JSON that is answered."""
        return self.perform(Call("GET", path, _query(query), waits_s=waits_s, is_repeatable=True)).json()

    def read_text(self, path: str, query: Query | None = None) -> str:
        """GET of a file."""
        return self.perform(Call("GET", path, _query(query), is_repeatable=True)).text

    def every(self, path: str, query: Query | None = None, *, page_size: int = 200) -> Iterator[Any]:
        """The items of all pages of a list, each page asked for when it is needed."""
        cursor: str | None = None
        while True:
            page = self.read(path, {**(query or {}), "limit": page_size, "cursor": cursor})
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """POST that changes nothing."""
        return self.perform(_json_call("POST", path, body)).json()

    def write(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> Any:
        """A change under an ``Idempotency-Key``: the caller's, or one made now."""
        return self.perform(keyed(_json_call(method, path, body), idempotency_key)).json()

    def write_numbered(self, path: str, body: Mapping[str, Any], number: str) -> Any:
        """A change that its own ``number``, in the body or the path, makes one for good."""
        return self.perform(_json_call("POST", path, body, identity=number)).json()

    def perform(self, call: Call) -> httpx.Response:
        """The answer to ``call``, which is sent again while that is safe and there is time.

        Raises ``Problem`` for the last refusal, ``NoAnswer`` when the last attempt had no answer.
        """
        deadline_s = self._clock() + self._policy.deadline_s
        attempts = 0
        while True:
            attempts += 1
            left_s = deadline_s - self._clock()
            try:
                return self._line.send(call, max(LEAST_TIMEOUT_S, min(self._policy.timeout_s, left_s)))
            except Problem as problem:
                problem.identity = call.identity
                wait_s = self._policy.wait_s(attempts, self._draw(), problem.retry_after_s)
                if not _asks_for_patience(problem) or not self._may_repeat(call, wait_s, deadline_s):
                    raise
            except httpx.TransportError as error:
                wait_s = self._policy.wait_s(attempts, self._draw(), None)
                if isinstance(error, OUR_FAULTS) or not self._may_repeat(call, wait_s, deadline_s):
                    raise NoAnswer(f"{call.method} {call.path}: {error!r}", call.identity) from error
            self._sleep(wait_s)

    def _may_repeat(self, call: Call, wait_s: float, deadline_s: float) -> bool:
        return call.is_repeatable and self._clock() + wait_s < deadline_s


def _asks_for_patience(problem: Problem) -> bool:
    return problem.status in PATIENCE or problem.code == IN_PROGRESS


def keyed(call: Call, idempotency_key: str | None) -> Call:
    """``call`` under an ``Idempotency-Key``: the caller's, or one made now."""
    key = idempotency_key or token_urlsafe(18)
    headers = {**call.headers, IDEMPOTENCY_KEY: key}
    return Call(call.method, call.path, call.query, headers, call.body, identity=key, is_repeatable=True)


def segment(value: str | int) -> str:
    """A value as a part of an address; a user's id may hold slashes."""
    return quote(str(value), safe="")


def given(**fields: Any) -> dict[str, Any]:
    """The fields that have a value: what is None is left out."""
    return {name: value for name, value in fields.items() if value is not None}


def _json_call(method: str, path: str, body: Mapping[str, Any] | None, identity: str | None = None) -> Call:
    if body is None:
        return Call(method, path, identity=identity, is_repeatable=True)
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return Call(method, path, {}, {"Content-Type": JSON_TYPE}, content, identity, is_repeatable=True)


def _query(query: Query | None) -> dict[str, str]:
    return {name: str(value) for name, value in (query or {}).items() if value is not None}
