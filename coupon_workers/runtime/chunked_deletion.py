"""Deleting many rows a few at a time, so that nobody waits long for any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import CursorResult, Engine, TextClause

from coupon_workers.runtime.database import transaction

CHUNK = 1_000
"""Rows deleted in one transaction: milliseconds of locks, and nothing lost when it is broken off."""


def delete_in_chunks(engine: Engine, statement: TextClause, named: Mapping[str, object], chunk: int) -> int:
    """Run ``statement``, each time in a transaction of its own, until it deletes less than ``chunk``; how many rows it
    deleted in all.

    It takes what is ``named``, and ``:chunk``, the most it may delete. One that deletes within a WITH answers how many.

    Raises ``StoreUnavailable``; the chunks before then are done.
    """
    deleted = 0
    while True:
        with transaction(engine) as connection:
            count = _deleted(connection.execute(statement, {**named, "chunk": chunk}))
        deleted += count
        if count < chunk:
            return deleted


def _deleted(result: CursorResult[Any]) -> int:
    return int(result.scalar_one()) if result.returns_rows else result.rowcount
