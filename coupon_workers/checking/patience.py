"""Two stores are not read at one instant: what seems broken is looked at again before it is called so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

PATIENCE_S = 10.0
"""Settling, sweeping and the sync of a change take a second or two; what is wrong after this is wrong."""

_PAUSE_S = 0.25


def looks(patience_s: float, pause: Callable[[float], None] = time.sleep) -> Iterator[bool]:
    """Yield once for each look, with a pause in between; True with the last, when the patience is at its end."""
    ends = time.monotonic() + patience_s
    while (left := ends - time.monotonic()) > 0:
        yield False
        pause(min(_PAUSE_S, left))
    yield True
