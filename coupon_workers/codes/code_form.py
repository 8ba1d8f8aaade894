"""How the codes of a batch are made: their length, prefix and check digit, and how many of them there can be."""

from __future__ import annotations

from dataclasses import dataclass

from coupon_workers.codes.canonical_form import canonical
from coupon_workers.codes.check_digit import BASE

SPARSENESS = 1_000_000
"""Of so many codes that could be typed one is right, at most: a guess then hits as seldom."""

SHORTEST, LONGEST = 4, 32
LONGEST_PREFIX = 16


@dataclass(frozen=True, slots=True)
class CodeForm:
    """``length`` characters behind the prefix, which shortens nothing; the last of them is the check digit, if any."""

    length: int = 12
    prefix: str = ""
    check_digit: bool = True

    @property
    def drawn(self) -> int:
        """Characters that are drawn at random."""
        return self.length - self.check_digit

    @property
    def space(self) -> int:
        """How many different codes there are."""
        return int(BASE**self.drawn)

    @property
    def allowed(self) -> int:
        """How many of them may be alive at once."""
        return self.space // SPARSENESS

    @property
    def canonical_prefix(self) -> str:
        """The prefix as it is hashed."""
        return canonical(self.prefix) or ""
