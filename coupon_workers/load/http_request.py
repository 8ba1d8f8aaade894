"""Requests as bytes: the parts that never change are made once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Address:
    """Where the web server listens, and the API key to show it."""

    host: str
    port: int
    key: str


class RequestForm:
    """The bytes of requests with one method and target, to which only the body is added.

    ``headers`` are sent beside ``Host``, ``Authorization``, ``Content-Type`` and ``Content-Length``.
    """

    def __init__(self, address: Address, method: str, target: str, headers: Mapping[str, str] | None = None) -> None:
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {address.host}:{address.port}",
            f"Authorization: Bearer {address.key}",
            "Content-Type: application/json",
            *(f"{name}: {value}" for name, value in (headers or {}).items()),
            "Content-Length: ",
        ]
        self._head = "\r\n".join(lines).encode("ascii")

    def with_body(self, body: bytes = b"") -> bytes:
        """The whole request."""
        return b"%b%d\r\n\r\n%b" % (self._head, len(body), body)

    def with_json(self, value: Any) -> bytes:
        """The whole request with ``value`` as compact JSON."""
        return self.with_body(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
