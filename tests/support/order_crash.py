"""A front that dies in the middle of a call of the order centre."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coupon_workers.orders import order_desk
from tests.support.crash import Crash


@contextmanager
def dies_at(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    """Whoever passes ``point`` (see ``runtime/crash_point.py``) dies there."""

    def crash_point(name: str) -> None:
        if name == point:
            raise Crash(name)

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(order_desk, "crash_point", crash_point)
        yield
