"""The wheel: a part for each prize and one for nothing, and where it stops."""

from __future__ import annotations

import pytest

from web.wheel import MOST_NUMBERED, place_of, wheel


@pytest.mark.parametrize("prizes", [0, 1, 2, 7, 100])
def test_each_prize_has_its_part_and_nothing_the_last(prizes: int) -> None:
    """Also where there are too many for numbers."""
    picture = wheel(prizes)

    assert prizes + 1 == picture.count('class="area ')
    assert 1 == picture.count('class="area rest"')
    assert (prizes + 1 if prizes < MOST_NUMBERED else 0) == picture.count("<text")
    assert "nan" not in picture and "style=" not in picture


def test_the_wheel_stops_at_the_prize() -> None:
    """In their order; no prize is the last part."""
    assert [0, 1, 2, 3] == [place_of(prize_no, 3) for prize_no in (1, 2, 3, 0)]
