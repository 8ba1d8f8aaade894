"""A call of an operator: templates are made, published, paused and resumed over HTTP like everything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coupon_workers.errors import CouponWorkersError
from coupon_workers.load.http_answer import Answer
from coupon_workers.load.http_connection import Exchange
from coupon_workers.load.http_request import Address, RequestForm

_LATER = frozenset({409, 429, 503})
"""A write still running (409 with ``Retry-After``), a rate, an absent server: all pass."""


class UnexpectedAnswer(CouponWorkersError):  # noqa: N818 - it says what was heard
    """The server answered an operator's call otherwise than the contract says."""


@dataclass(frozen=True, slots=True)
class AdminCall:
    """One call. ``idempotency_key`` makes a write safe to send again when its answer was lost."""

    method: str
    target: str
    body: Mapping[str, Any] | None = None
    idempotency_key: str | None = None

    def exchange(self, address: Address) -> Exchange:
        """The call as an exchange whose tag is the call."""
        headers = {"Idempotency-Key": self.idempotency_key} if self.idempotency_key else {}
        form = RequestForm(address, self.method, self.target, headers)
        payload = form.with_body() if self.body is None else form.with_json(self.body)
        return Exchange(payload, self, _LATER)

    def result(self, answer: Answer | None) -> Any:
        """The JSON of a 2xx answer. Raises ``UnexpectedAnswer`` for every other."""
        if answer is None:
            raise UnexpectedAnswer(f"{self.method} {self.target}: no answer")
        if not 200 <= answer.status < 300:
            text = answer.body[:500].decode(errors="replace")
            raise UnexpectedAnswer(f"{self.method} {self.target}: {answer.status} {text}")
        return json.loads(answer.body) if answer.body else None


def code_of(answer: Answer | None) -> str:
    """The ``code`` of a problem (API.md, Errors); an empty text of any other answer, and of none."""
    if answer is None or answer.status < 400:
        return ""
    try:
        return str(json.loads(answer.body)["code"])
    except (ValueError, TypeError, KeyError):
        return ""
