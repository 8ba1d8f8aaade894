"""The odds of prizes: whole weights that sum to a million, and what a number drawn by chance wins."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

WEIGHTS = 1_000_000
"""What the weights of a lottery's prizes sum to: a weight of 1 is one draw in a million."""

NONE = 0
"""The number of no prize."""


def weights_problem(weights: Sequence[int]) -> str | None:
    """What is wrong with the weights, or None."""
    total = sum(weights)
    return None if total == WEIGHTS else f"the weights must sum to {WEIGHTS}, and sum to {total}"


def draw_number() -> int:
    """A number for one draw, of the operating system's chance: nobody can know the next one."""
    return secrets.randbelow(WEIGHTS)


def pick(weights: Sequence[int], number: int) -> int:
    """The number, from 1, of the prize that ``number`` (0 to ``WEIGHTS`` - 1) wins; ``lua/draw.lua`` does the same."""
    for prize_no, weight in enumerate(weights, start=1):
        number -= weight
        if number < 0:
            return prize_no
    return NONE
