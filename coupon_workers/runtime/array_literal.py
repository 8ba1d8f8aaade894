"""PostgreSQL array literals: one text for the server to read instead of a thousand expressions to parse."""

from __future__ import annotations

from collections.abc import Iterable


def numbers(values: Iterable[int | None]) -> str:
    """Of integers; None is NULL."""
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"


def texts(values: Iterable[str]) -> str:
    """Of texts without NUL. Most bear nothing that must be escaped: all are looked through at once."""
    listed = list(values)
    whole = "".join(listed)
    if "\\" in whole or '"' in whole:
        listed = [value.replace("\\", "\\\\").replace('"', '\\"') for value in listed]
    return '{"' + '","'.join(listed) + '"}' if listed else "{}"
