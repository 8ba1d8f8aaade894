"""The draw desk of this process: one for all its threads, made at the first draw, after the fork."""

from __future__ import annotations

from threading import Lock

from flask import current_app

from coupon_workers.lottery.draw_front import DrawFront
from coupon_workers.lottery.draw_gate import DrawDecision, DrawRequest
from coupon_workers.runtime.metrics import count_draw
from web.context import services

_EXTENSION = "coupon_workers_draw_front"
_lock = Lock()


def draw(request: DrawRequest) -> DrawDecision:
    """Decide one draw, and count it. Raises ``StoreUnavailable``."""
    decision = _desk().draw(request)
    count_draw(decision.outcome)
    return decision


def _desk() -> DrawFront:
    desk: DrawFront | None = current_app.extensions.get(_EXTENSION)
    if desk is None:
        with _lock:
            desk = current_app.extensions.setdefault(_EXTENSION, DrawFront(services()))
    return desk
