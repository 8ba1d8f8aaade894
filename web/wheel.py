"""The wheel of a lottery as a picture: equal parts in the order of the prizes, the last one for nothing.

Parts are equal because one draw in a million is no part that anybody could see; the odds stand beside it.
"""

from __future__ import annotations

from math import cos, pi, sin

from markupsafe import Markup

RADIUS = 100
COLORS = 6
"""``s1`` to ``s6`` of the console's style."""
MOST_NUMBERED = 24
"""With more parts than this their numbers would lie upon one another."""


def wheel(prizes: int) -> Markup:
    """An SVG of ``prizes`` parts and one more, from the top clockwise. It says nothing to who cannot see it: its page
    has the prizes in words."""
    parts = prizes + 1
    shown = Markup("").join(_part(place, parts, prizes) for place in range(parts))
    view = f"{-RADIUS - 4} {-RADIUS - 4} {2 * RADIUS + 8} {2 * RADIUS + 8}"
    return Markup('<svg class="wheel" viewBox="{}" aria-hidden="true"><g class="disc">{}</g>{}</svg>').format(
        view, shown, Markup('<path class="pin" d="M-8,-104 L8,-104 L0,-84 Z"></path>')
    )


def place_of(prize_no: int, prizes: int) -> int:
    """The part, from 0, on which the wheel stops for a prize; 0, no prize, is the last."""
    return (prize_no or prizes + 1) - 1


def _part(place: int, parts: int, prizes: int) -> Markup:
    is_none = place == prizes
    color = "rest" if is_none else f"s{place % COLORS + 1}"
    shape = Markup('<circle class="area {}" r="{}"></circle>').format(color, RADIUS)
    if parts > 1:
        (x1, y1), (x2, y2) = _edge(place / parts), _edge((place + 1) / parts)
        # With two parts each is half of the circle: the large arc begins beyond that.
        path = f"M0,0 L{x1},{y1} A{RADIUS},{RADIUS} 0 0 1 {x2},{y2} Z"
        shape = Markup('<path class="area {}" d="{}"></path>').format(color, path)
    if parts > MOST_NUMBERED:
        return shape
    # Turned with its part: it stands upright under the pin.
    turned = round(360 * (place + 0.5) / parts, 2)
    text = Markup('<text y="{}" transform="rotate({})">{}</text>')
    return shape + text.format(-0.72 * RADIUS, turned, "—" if is_none else place + 1)


def _edge(turn: float) -> tuple[float, float]:
    angle = 2 * pi * turn
    return round(RADIUS * sin(angle), 2), round(-RADIUS * cos(angle), 2)
