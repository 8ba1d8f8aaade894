"""Examples of requests and answers for the published description, as a walk through the API has had them.

They lie in ``examples.json``: operation → ``asked``, and ``answered`` by status. The tests walk anew and compare; they
write the file when ``RECORD_EXAMPLES`` is set.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from web.json_body import JSON_TYPE

FILE = Path(__file__).with_name("examples.json")
NAME = "sent"
"""Of the one example of a body."""


def named(value: Any) -> dict[str, Any]:
    """The ``examples`` of a body. By name, since the reader at ``/docs`` fails at an ``example`` in which something
    is null, and shows no other."""
    return {NAME: {"value": value}}


def add_examples(name: str, operation: dict[str, Any]) -> None:
    """Give the operation ``name`` (method and path) the examples it has none for."""
    example = _examples().get(name, {})
    body = operation.get("requestBody", {}).get("content", {}).get(JSON_TYPE)
    if body is not None and example.get("asked") is not None:
        body.setdefault("examples", named(example["asked"]))
    for status, answer in example.get("answered", {}).items():
        media = operation["responses"].get(status, {}).get("content", {}).get(JSON_TYPE)
        if media is not None:
            media.setdefault("examples", named(answer))


@cache
def _examples() -> dict[str, Any]:
    examples: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return examples
