"""Calls of an order centre that meet: all at once, or lined up one behind the other at a row that somebody holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, text

from coupon_workers.errors import Conflict
from tests.support.workshop import eventually

Act = Callable[[], Any]

_WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")


@contextmanager
def row_held(engine: Engine, statement: str, **named: Any) -> Iterator[None]:
    """Somebody else holds what ``statement`` selects, ``FOR UPDATE``."""
    with engine.begin() as connection:
        assert connection.execute(text(f"{statement} FOR UPDATE"), named).all()
        yield


def lined_up(engine: Engine, statement: str, *acts: Act, **named: Any) -> list[Any]:
    """What each act returns, or the error it raises. All run into the row that ``statement`` selects, in this order,
    before any of them gets it."""
    with ThreadPoolExecutor(len(acts)) as threads:
        futures: list[Future[Any]] = []
        with row_held(engine, statement, **named):
            for act in acts:
                futures.append(threads.submit(act))
                assert eventually(lambda: waiting(engine) == len(futures))
        return [future.exception() or future.result() for future in futures]


def code_of(outcome: Any) -> str:
    """``OK`` for an answer; the code of a refusal, the name of another error."""
    if isinstance(outcome, Conflict):
        return outcome.code
    return type(outcome).__name__ if isinstance(outcome, BaseException) else "OK"


def waiting(engine: Engine) -> int:
    """How many wait for a row, or for a transaction to end."""
    with engine.connect() as connection:
        return int(connection.scalar(_WAITING) or 0)
