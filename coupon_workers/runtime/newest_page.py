"""Pages of a table, the newest rows first: each begins below the identity at which the one before it ended."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import InstrumentedAttribute


def newest(identity: InstrumentedAttribute[int], *, limit: int, before: int | None, **fixed: object) -> Select[Any]:
    """The ``limit`` rows of ``identity``'s table with the highest ones below ``before``.

    ``fixed``: column by column, what a row must have there; None: whatever it has.
    """
    table = identity.class_.__table__
    wanted = select(table).order_by(identity.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(identity < before)
    return wanted.where(*(table.c[column] == value for column, value in fixed.items() if value is not None))
