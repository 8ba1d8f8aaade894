"""A run: the rows one after the other, the sides of a row in turn."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bench.row import Row, RowResult
from bench.stage import Stage
from coupon_workers.errors import CouponWorkersError

Told = Callable[[str], None]
"""Is told what begins."""


def run_rows(stage: Stage, rows: Iterable[Row], told: Told) -> Iterator[RowResult]:
    """Measure each row; one that breaks says why, and the next begins on an empty stage."""
    for row in rows:
        yield run_row(stage, row, told)


def run_row(stage: Stage, row: Row, told: Told) -> RowResult:
    """Rounds that are not counted, then ``rounds`` that are: A B C, A B C, …; short ones A B, B A, A B, …

    The rehearsal warms what is cold: code that was never run, plans, connections, pages.
    """
    result = RowResult(row, os.getloadavg()[0])
    try:
        stage.world.clear()
        told(f"{row.name}: preparing")
        with row.open(stage) as sides:
            rounds = stage.scale.short_rounds if row.short else stage.scale.rounds
            for number in range(1 - stage.scale.rehearsals, rounds + 1):
                shown = {}
                for name in reversed(sides) if row.short and number % 2 else sides:
                    told(f"{row.name}: {f'round {number}' if number > 0 else 'rehearsal'}, {name}")
                    shown[name] = sides[name]()
                if number > 0:
                    result.rounds.append(shown)
    except (CouponWorkersError, OSError, ImportError) as error:
        result.failure = str(error)
        _note(stage.folder, row)
    return result


def _note(folder: Path, row: Row) -> None:
    with (folder / "logs" / "bench.log").open("a", encoding="utf-8") as log:
        log.write(f"{row.name}\n{traceback.format_exc()}\n")
