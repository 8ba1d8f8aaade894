"""Work that is broken off before one of its statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from sqlalchemy import Engine, event


@contextmanager
def broken_off_at(engine: Engine, statement: int) -> Iterator[None]:
    """The ``statement``-th one does not reach the server, and the block ends there."""
    statements = count(1)

    def break_off(*_: object) -> None:
        if next(statements) == statement:
            raise InterruptedError

    event.listen(engine, "before_cursor_execute", break_off)
    try:
        with pytest.raises(InterruptedError):
            yield
    finally:
        event.remove(engine, "before_cursor_execute", break_off)
