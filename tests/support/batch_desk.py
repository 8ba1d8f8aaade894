"""An operator who makes batches over HTTP, and the form that takes a file there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.support.http_caller import Caller
from tests.support.http_reply import Reply

BOUNDARY = "a-line-between"

Part = tuple[str, str | None, bytes]
"""A field's name, the name of its file if it has one, its bytes."""


def form(parts: Iterable[Part], boundary: str = BOUNDARY) -> bytes:
    """The body of a form."""
    pieces = []
    for name, file_name, content in parts:
        file = "" if file_name is None else f'; filename="{file_name}"'
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        pieces.append(head.encode() + content + b"\r\n")
    return b"".join(pieces) + f"--{boundary}--\r\n".encode()


def users_csv(*users: str) -> bytes:
    """An audience."""
    return "\n".join(("user_id", *users, "")).encode()


class BatchDesk:
    """What an operator does with batches; ``admin`` has a key for it."""

    def __init__(self, admin: Caller) -> None:
        self.admin = admin

    def send(self, body: bytes, boundary: str = BOUNDARY, **headers: str) -> Reply:
        """POST of a form, whatever it is."""
        content_type = f"multipart/form-data; boundary={boundary}"
        return self.admin.ask("POST", "/v1/batches", body, Content_Type=content_type, **headers)

    def post(
        self, template_id: Any, file: bytes, fields: dict[str, str] | None = None, key: str = "", name: str = "a.csv"
    ) -> Reply:
        """POST of a file for a template; ``fields`` go over those of a sensible form."""
        given = {"template_id": str(template_id), "name": "regulars"} | (fields or {})
        parts: list[Part] = [(field, None, value.encode()) for field, value in given.items()]
        headers = {"Idempotency_Key": key} if key else {}
        return self.send(form([*parts, ("file", name, file)]), **headers)

    def post_tags(self, template_id: Any, tags: str, **fields: Any) -> Reply:
        """POST of an expression over tags."""
        body = {"template_id": template_id, "name": "regulars", "tags": tags, **fields}
        return self.admin.ask("POST", "/v1/batches", body)

    def made(self, template_id: Any, *users: str, **fields: str) -> str:
        """The number of a batch for these users, which must be taken on."""
        return str(self.post(template_id, users_csv(*users), fields).ok(202)["batch_no"])

    def read(self, batch_no: str) -> dict[str, Any]:
        """GET."""
        return dict(self.admin.ask("GET", f"/v1/batches/{batch_no}").ok())

    def page(self, query: str = "") -> dict[str, Any]:
        """GET of the list."""
        return dict(self.admin.ask("GET", f"/v1/batches{query}").ok())

    def act(self, batch_no: str, action: str) -> Reply:
        """POST to one of a batch's actions."""
        return self.admin.ask("POST", f"/v1/batches/{batch_no}/{action}")

    def failures(self, batch_no: str) -> Reply:
        """GET of the rows without a coupon."""
        return self.admin.ask("GET", f"/v1/batches/{batch_no}/failures.csv")
