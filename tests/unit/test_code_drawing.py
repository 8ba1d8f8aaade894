"""Codes as they are drawn: their characters, their lengths, their chances (CASES 26, 27)."""

from __future__ import annotations

from collections import Counter

import pytest

from coupon_workers.codes.alphabet import ALPHABET, LOOK_ALIKE
from coupon_workers.codes.canonical_form import canonical
from coupon_workers.codes.check_digit import is_intact
from coupon_workers.codes.code_drawing import draw_codes
from coupon_workers.codes.code_form import LONGEST, SHORTEST, SPARSENESS, CodeForm

MANY = 100_000


def test_a_hundred_thousand_codes_hold_nothing_that_is_taken_for_another() -> None:
    """``0 O 1 I L``, and what else looks like something; no two are equal, each is its own canonical form."""
    codes = draw_codes(CodeForm(), MANY)

    assert set(ALPHABET) == set("".join(codes))
    assert set() == set("".join(codes)) & set("0O1ILQSZBGU")
    assert (MANY, {12}) == (len(set(codes)), {len(code) for code in codes})
    assert codes[:1_000] == [canonical(code) for code in codes[:1_000]]


def test_no_character_of_the_alphabet_looks_like_another_of_it() -> None:
    """Of each pair at most one is drawn."""
    for letter, character in LOOK_ALIKE.items():
        assert chr(letter) not in ALPHABET
        assert chr(character) in ALPHABET or chr(character) in "01"


def test_each_character_is_as_likely_as_any_other() -> None:
    """In 1.1 million draws a character off by four standard deviations comes once in ten thousand such tests."""
    counts = Counter("".join(draw_codes(CodeForm(length=11, check_digit=False), MANY)))

    expected = MANY * 11 / len(ALPHABET)
    assert len(ALPHABET) == len(counts)
    assert max(abs(count - expected) for count in counts.values()) < 5 * expected**0.5


@pytest.mark.parametrize("length", [SHORTEST, 12, 16, LONGEST])
@pytest.mark.parametrize("check_digit", [True, False])
def test_a_code_has_the_length_that_was_asked_for(length: int, check_digit: bool) -> None:
    """The check digit is within it, and right."""
    codes = draw_codes(CodeForm(length, "SAVE", check_digit), 200)

    assert {length} == {len(code) for code in codes}
    assert not check_digit or all(map(is_intact, codes))


def test_a_prefix_does_not_shorten_what_is_drawn() -> None:
    """So there are as many codes with it as without (CASES 27)."""
    assert CodeForm(12).space == CodeForm(12, "DOUBLE-ELEVEN").space == 23**11
    assert CodeForm(12, check_digit=False).space == 23**12


def test_codes_lie_so_far_apart_that_a_guess_hits_once_in_a_million() -> None:
    """Ten million of the usual length; not one of length 4; a few of length 8."""
    assert 0 == CodeForm(4).allowed
    assert 23**7 // SPARSENESS == CodeForm(8).allowed
    assert CodeForm(12).allowed > 10_000_000
