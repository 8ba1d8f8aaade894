"""The check digit shows every single typing error (DESIGN 11)."""

from __future__ import annotations

import random

import pytest

from coupon_workers.codes.alphabet import ALPHABET
from coupon_workers.codes.check_digit import is_intact
from coupon_workers.codes.code_drawing import draw_codes
from coupon_workers.codes.code_form import LONGEST, SHORTEST, CodeForm

LENGTHS = [SHORTEST, 12, 16, 24, LONGEST]


@pytest.mark.parametrize("length", LENGTHS)
def test_one_wrong_character_always_shows(length: int) -> None:
    """At every place, every other character."""
    for code in draw_codes(CodeForm(length), 5):
        wrong = (
            code[:place] + other + code[place + 1 :]
            for place in range(length)
            for other in ALPHABET
            if other != code[place]
        )
        assert not any(map(is_intact, wrong))


@pytest.mark.parametrize("length", LENGTHS)
def test_two_neighbours_swapped_always_show(length: int) -> None:
    """The check digit and the one before it, too."""
    for code in draw_codes(CodeForm(length), 50):
        for place in range(length - 1):
            swapped = code[:place] + code[place + 1] + code[place] + code[place + 2 :]
            assert swapped == code or not is_intact(swapped)


def test_of_any_texts_one_in_twenty_three_passes() -> None:
    """The check digit is for typing errors: it keeps no guesser out."""
    drawn = random.Random(23)
    texts = ["".join(drawn.choices(ALPHABET, k=12)) for _ in range(23_000)]

    assert 800 < sum(map(is_intact, texts)) < 1_200


@pytest.mark.parametrize("text", ["", "K", "K7W0", "k7wx", "K7W-"])
def test_what_is_no_code_is_not_intact(text: str) -> None:
    """Too short, or not of the alphabet."""
    assert not is_intact(text)
