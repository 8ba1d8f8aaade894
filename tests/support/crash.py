"""Dying at a named point: in a test the process lives on, so dying is an exception that nothing of ours catches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from coupon_workers.claiming import claim_batch, preheat, read_ahead, settlement
from coupon_workers.coupons import reissue
from coupon_workers.lottery import draw_gate, draw_settlement, lottery_change, lottery_preheat
from coupon_workers.risk import review_desk, verdict_log


class Crash(BaseException):
    """The process died here."""


@contextmanager
def crash_at(monkeypatch: pytest.MonkeyPatch, point: str, nth: int = 1) -> Iterator[None]:
    """Whoever passes ``point`` (see ``runtime/crash_point.py``) for the ``nth`` time, or later, dies there."""
    passes = count(1)

    def crash_point(name: str) -> None:
        if name == point and next(passes) >= nth:
            raise Crash(name)

    with monkeypatch.context() as patch:
        lotteries = (draw_gate, draw_settlement, lottery_change, lottery_preheat)
        for module in (claim_batch, read_ahead, settlement, preheat, *lotteries, review_desk, verdict_log, reissue):
            patch.setattr(module, "crash_point", crash_point)
        yield
