"""The last character of a code, from which a front sees a typing error before it asks.

Values by weights sum to 0 modulo 23, the size of the alphabet. 23 is prime and neighbours have different weights, so
that one wrong character, or two neighbours swapped, always shows.
"""

from __future__ import annotations

from functools import cache
from operator import mul

from coupon_workers.codes.alphabet import ALPHABET, VALUE

BASE = len(ALPHABET)


@cache
def weights(length: int) -> tuple[int, ...]:
    """For the characters before the check digit: from the right 2, 3, … 22, 1, 2, …; its own is 1."""
    return tuple(place % (BASE - 1) + 1 for place in range(length, 0, -1))


def check_value(values: bytes) -> int:
    """The value of the check digit behind characters of these values."""
    return int(-sum(map(mul, weights(len(values)), values)) % BASE)


def is_intact(code: str) -> bool:
    """Whether the check digit of a canonical code, without its prefix, is right."""
    values = bytes(VALUE.get(character, BASE) for character in code)
    if len(values) < 2 or BASE in values:
        return False
    return check_value(values[:-1]) == values[-1]
