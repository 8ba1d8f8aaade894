"""One claim as a client is about to send it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class ClaimKind(StrEnum):
    """What a call is, seen from its client."""

    FIRST = "first"
    """The user's first claim of the template."""

    REPEAT = "repeat"
    """The same user wants the same template once more, by a new request."""

    RETRY = "retry"
    """The same request again, as a client sends it that did not hear the answer."""

    WRONG = "wrong"
    """A body that breaks the contract: it must be refused with a 4xx and change nothing."""


class ClaimCall(NamedTuple):
    """``POST /v1/claims`` (API.md, Claims). ``device_id`` and ``ip`` are sent where there is one."""

    template_id: str
    user_id: str
    request_id: str
    kind: ClaimKind = ClaimKind.FIRST
    device_id: str | None = None
    ip: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body; a ``WRONG`` call lacks its user and has a field that does not exist."""
        if self.kind is ClaimKind.WRONG:
            return {"template_id": self.template_id, "request_id": self.request_id, "usr_id": self.user_id}
        body = {"template_id": self.template_id, "user_id": self.user_id, "request_id": self.request_id}
        origin = {"device_id": self.device_id, "ip": self.ip}
        return body | {name: value for name, value in origin.items() if value is not None}
