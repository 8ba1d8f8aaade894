"""Something that goes on for a while, as its page shows it first and its script asks for it afterwards.

Both show the same: texts by name, which the page has in elements marked ``data-is``, and the parts of a bar.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from web.console.show import number
from web.console.word import tone_of, word


def progress(
    status: str, over: bool, total: int, parts: Mapping[str, int], texts: Mapping[str, str], stands: str = ""
) -> dict[str, Any]:
    """What moves. ``parts`` of ``total`` follow one another in the bar; ``over``: nothing moves any more. ``stands``:
    what else, beside the status, makes another page of it when it changes."""
    return {
        "stands": f"{status} {stands}",
        "status_word": word(status),
        "tone": tone_of(status),
        "over": over,
        "parts": shares(total, parts),
        "texts": {name: number(count) for name, count in parts.items()} | dict(texts),
    }


def shares(total: int, parts: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """Where each part of a bar begins and how wide it is, in percent."""
    found, at = {}, 0
    for name, count in parts.items():
        found[name] = {"from": _percent(at, total), "width": _percent(count, total)}
        at += count
    return found


def _percent(count: int, total: int) -> float:
    return round(count * 100 / total, 2) if total else 0.0
