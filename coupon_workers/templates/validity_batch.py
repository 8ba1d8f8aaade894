"""The validity of many coupons at once: settling asks for a thousand windows that differ in nothing but the instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coupon_workers.runtime.clock import from_ms, to_ms
from coupon_workers.templates.validity import valid_window

ONE_HOUR_MS = 3_600_000


def windows_ms(validity: Mapping[str, Any], timezone: str, issued_ms: Sequence[int]) -> list[tuple[int, int]]:
    """``(valid_from_ms, valid_to_ms)`` for each instant of issue, equal to what ``valid_window`` says of each.

    Instants within an hour whose first and last agree, in the windows or in their distance from the issue, agree in
    between: a window moves with the instant or stands still, and no two changes of a clock lie so close.
    """
    if not issued_ms:
        return []
    first_ms, last_ms = min(issued_ms), max(issued_ms)
    first, last = _window(validity, timezone, first_ms), _window(validity, timezone, last_ms)
    if last_ms - first_ms < ONE_HOUR_MS:
        moves = [_move(first[side], last[side], first_ms, last_ms) for side in (0, 1)]
        if None not in moves:
            (from_base, from_step), (to_base, to_step) = moves  # type: ignore[misc]  # None is ruled out above
            return [(from_base + from_step * (at - first_ms), to_base + to_step * (at - first_ms)) for at in issued_ms]
    return [_window(validity, timezone, at) for at in issued_ms]


def _move(first: int, last: int, first_ms: int, last_ms: int) -> tuple[int, int] | None:
    """The edge at the first instant and how it moves: 0, it stands; 1, with the instant; None: neither."""
    if first == last:
        return first, 0
    return (first, 1) if last - first == last_ms - first_ms else None


def _window(validity: Mapping[str, Any], timezone: str, at_ms: int) -> tuple[int, int]:
    valid_from, valid_to = valid_window(validity, timezone, from_ms(at_ms))
    return to_ms(valid_from), to_ms(valid_to)
