"""Chance from the operating system, in bulk: whole numbers and shuffles that nobody can foresee.

``random.SystemRandom`` asks the system once for each number, which for a million of them takes longer than all the
rest. Here each word of 64 bits becomes a number below a bound by multiplication: no float, and of bounds up to 2**53
no number comes up more often than another by more than one part in 2**11, of a bound of a million by one in 2**44.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator

_WORDS_AT_A_TIME = 8_192
"""64 KiB of chance: a system call now and then, and no memory to speak of."""


def words() -> Iterator[int]:
    """Numbers of 64 bits, for ever."""
    while True:
        yield from array("Q", os.urandom(8 * _WORDS_AT_A_TIME))


def shuffle(values: array[int]) -> None:
    """Bring ``values`` into an order of which each is as likely as another (Fisher and Yates)."""
    for last, word in zip(range(len(values) - 1, 0, -1), words(), strict=False):
        other = (word * (last + 1)) >> 64
        values[last], values[other] = values[other], values[last]
