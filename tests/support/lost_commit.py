"""A COMMIT that did not happen, or whose answer is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError


@contextmanager
def commit_lost(engine: Engine, *, done: bool = False, nth: int = 1) -> Iterator[None]:
    """The connection ends at the ``nth`` COMMIT and every later one: after it was ``done``, or before."""
    commits = count(1)

    def lose(connection: object) -> None:
        if next(commits) < nth:
            return
        if done:
            connection.connection.dbapi_connection.commit()  # type: ignore[attr-defined]
        raise OperationalError("COMMIT", {}, Exception("the server closed the connection"))

    event.listen(engine, "commit", lose)
    try:
        yield
    finally:
        event.remove(engine, "commit", lose)
