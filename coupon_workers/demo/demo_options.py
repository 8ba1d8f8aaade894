"""What the command line asks of a demo."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """``rate``: claims a second, None: flat out. ``full``: beside the sale the stories of ``full_demo.py``."""

    claims: int
    orders: int
    seed: int
    connections: int
    rate: float | None
    kill_every_s: float | None
    full: bool = False
