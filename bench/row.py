"""A row: sides that are measured in turn, and what is owed between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bench.stage import Stage

Numbers = Mapping[str, float]
"""What one run of a side showed, by name; units end the names: ``claims_per_s``, ``web_us``, ``answer_p99_ms``."""

Side = Callable[[], Numbers]
"""Runs one side once. Raises ``BenchFailure`` when the work was not done as it should be."""

Sides = Mapping[str, Side]
"""The sides by name, in the order in which a round runs them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the table: ``number`` of the side ``ours`` over that of ``peer``, or over ``constant``.

    ``owed`` is the ratio DESIGN 14 names, None when it names none; ``sense`` says on which side of it we must be.
    """

    work: str
    against: str
    number: str
    ours: str
    peer: str | None = None
    constant: float | None = None
    owed: float | None = None
    aim: float | None = None
    sense: Literal["at least", "at most"] = "at least"


@dataclass(frozen=True, slots=True)
class Row:
    """``open`` prepares what the sides need and cleans up behind them; ``about`` says how it is measured.

    ``short``: many short rounds, every second one backwards, instead of a few long ones: for sides that differ by less
    than a machine does from one minute to the next.
    """

    name: str
    about: str
    comparisons: tuple[Comparison, ...]
    open: Callable[[Stage], AbstractContextManager[Sides]]
    short: bool = False


@dataclass(slots=True)
class RowResult:
    """Every number of every measured round, round by round, side by side. ``failure``: why there are no more.

    ``load_average`` is the machine's of the last minute, when the row began: above the number of cores, others were
    at work.
    """

    row: Row
    load_average: float
    rounds: list[dict[str, Numbers]] = field(default_factory=list)
    failure: str | None = None

    def of(self, side: str, number: str) -> list[float]:
        """The number of a side in each round that has it."""
        return [shown[side][number] for shown in self.rounds if number in shown.get(side, {})]
