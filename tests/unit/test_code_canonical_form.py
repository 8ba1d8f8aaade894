"""A code however it is typed (CASES 25)."""

from __future__ import annotations

import pytest

from coupon_workers.codes.canonical_form import LONGEST_CODE, canonical


@pytest.mark.parametrize(
    "typed",
    [
        "SAVE10AB",
        "save-10ab",
        " SAVE10AB ",
        "Save 10 ab",
        "\uff33\uff21\uff36\uff25\uff11\uff10\uff21\uff22",
        "SAVE\u00a010AB",
        "SA\u200bVE\u200d10\ufeffAB",
        "SAVE\u201310\u2014AB",
        "SAVE\u221210\u00adAB",
        "\u3000SAVE10AB\r\n",
        "\u2066SAVE10AB\u2069",
    ],
)
def test_a_code_is_the_same_however_it_is_typed(typed: str) -> None:
    """Case, spaces of every width, dashes of every kind, full-width letters, what has no width."""
    assert canonical("SAVE10AB") == canonical(typed)


@pytest.mark.parametrize(("read", "meant"), [("O", "0"), ("Q", "0"), ("l", "1"), ("I", "1"), ("S", "5"), ("B", "8")])
def test_a_letter_that_looks_like_another_character_is_that_one(read: str, meant: str) -> None:
    """Whoever reads a 5 as an S has typed the code."""
    assert canonical(f"K{meant}W") == canonical(f"K{read}W")


@pytest.mark.parametrize(
    "typed", ["", " - ", "K7W!", "K7W\u00df", "K7\u0417", "K" * (LONGEST_CODE + 1), "\ud800", "K7\x00W", "\u0131K7"]
)
def test_what_no_code_can_be_has_no_form(typed: str) -> None:
    """Signs, letters of other scripts that only look alike, nothing at all, too much."""
    assert canonical(typed) is None


def test_what_differs_stays_different() -> None:
    """Nothing but look-alikes falls together."""
    characters = "2345678901ACDEFHJKMNPRTVWXY"

    assert len(characters) == len({canonical(f"X{character}") for character in characters})
