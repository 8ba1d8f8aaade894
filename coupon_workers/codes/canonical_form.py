"""A code as it was typed, brought to the one form that is hashed (CASES 25)."""

from __future__ import annotations

import unicodedata

from coupon_workers.codes.alphabet import LOOK_ALIKE

LONGEST_CODE = 64
"""Characters of a code, prefix included, in its canonical form; the longest that is generated has 48."""

_DROPPED = frozenset({"Zs", "Zl", "Zp", "Pd", "Cf"})
"""Unicode categories: spaces of any width, separators, dashes, and what has no width at all."""

_ALSO_DROPPED = frozenset("\t\r\n\u2212\ufe0f")
"""Ends of pasted lines, the minus sign, and the variation selector that phones add."""


def canonical(typed: str) -> str | None:
    """The canonical form of what was typed; None for what no code can be.

    Full-width letters are narrow ones, spaces and dashes are nothing, small letters are capitals, and letters that look
    like another character are that one.
    """
    kept = "".join(
        character
        for character in unicodedata.normalize("NFKC", typed)
        if character not in _ALSO_DROPPED and unicodedata.category(character) not in _DROPPED
    )
    if not (kept.isascii() and kept.isalnum() and len(kept) <= LONGEST_CODE):
        return None
    return kept.upper().translate(LOOK_ALIKE)
