"""The characters of codes: none that is taken for another (DESIGN 11)."""

from __future__ import annotations

ALPHABET = "23456789CDFHJKMNPRTVWXY"
"""23 digits and letters. Without ``0 O Q``, ``1 I L``, ``S`` (5), ``Z`` (2), ``B`` (8), ``G`` (6), ``U`` (V), and
without ``A E``, so that no code spells a word. A prime number of them: see ``check_digit.py``."""

LOOK_ALIKE = str.maketrans("OQILSZBGU", "00115286V")
"""Letters that are not drawn → what they are read as. Whoever reads a 5 as an S types the same code."""

VALUE = {character: value for value, character in enumerate(ALPHABET)}
