"""One call of an order centre as a client is about to send it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

GOOD = frozenset({200})


class OrderCall(NamedTuple):
    """A call of API.md, Orders. ``allowed``: the statuses that the contract has for it at this point of its story.

    ``life`` and ``step`` name its place: the same call sent again has the same, and must have the same answer.
    """

    life: int
    step: int
    name: str
    target: str
    body: Mapping[str, Any]
    allowed: frozenset[int] = GOOD

    @property
    def subject(self) -> str:
        """The call in a breach."""
        return f"life {self.life} step {self.step} {self.name} {self.target}"
