"""Which statements of an engine write: what only reads has none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

_WRITE = re.compile(r"\b(?:INSERT\s+INTO|DELETE\s+FROM|(?<!FOR )(?<!KEY )UPDATE)\s+(?:ONLY\s+)?(\w+)", re.IGNORECASE)

MARKS_OF_USE = frozenset({"api_key", "console_session"})
"""Tables that are written by being asked: when a key or a session was last used."""


def tables_written(statement: str) -> set[str]:
    """The tables that a statement writes, marks of use left out."""
    return {table.lower() for table in _WRITE.findall(statement)} - MARKS_OF_USE


@contextmanager
def writes_of(engine: Engine) -> Iterator[list[str]]:
    """The tables written by the block, in order; filled while it runs."""
    written: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        written.extend(sorted(tables_written(statement)))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield written
    finally:
        event.remove(engine, "before_cursor_execute", note)
