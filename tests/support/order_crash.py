"""A front that dies in the middle of a call of the order centre, and a COMMIT whose answer is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError

from coupon_workers.orders import order_desk
from tests.support.crash import Crash


@contextmanager
def dies_at(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    """Whoever passes ``point`` (see ``runtime/crash_point.py``) dies there."""

    def crash_point(name: str) -> None:
        if name == point:
            raise Crash(name)

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(order_desk, "crash_point", crash_point)
        yield


@contextmanager
def commit_lost(engine: Engine, *, done: bool) -> Iterator[None]:
    """The connection ends at the COMMIT: after it was ``done``, or before."""

    def lose(connection: object) -> None:
        if done:
            connection.connection.dbapi_connection.commit()  # type: ignore[attr-defined]
        raise OperationalError("COMMIT", {}, Exception("the server closed the connection"))

    event.listen(engine, "commit", lose)
    try:
        yield
    finally:
        event.remove(engine, "commit", lose)
