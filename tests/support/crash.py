"""Dying at a named point: in a test the process lives on, so dying is an exception that nothing of ours catches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import ModuleType

import pytest

from coupon_workers.runtime import crash_point as points


class Crash(BaseException):
    """The process died here."""


@contextmanager
def crash_at(monkeypatch: pytest.MonkeyPatch, point: str | None, nth: int = 1) -> Iterator[None]:
    """Whoever passes ``point`` (see ``runtime/crash_point.py``) for the ``nth`` time, or later, dies there."""
    passes = count(1)

    def crash_point(name: str) -> None:
        if name == point and next(passes) >= nth:
            raise Crash(name)

    with monkeypatch.context() as patch:
        for module in _modules_with_points():
            patch.setattr(module, "crash_point", crash_point)
        yield


@contextmanager
def dies_at(monkeypatch: pytest.MonkeyPatch, point: str, nth: int = 1) -> Iterator[None]:
    """As ``crash_at``; the block passes the point, and ends there."""
    with crash_at(monkeypatch, point, nth), pytest.raises(Crash):
        yield


def _modules_with_points() -> list[ModuleType]:
    # Their own package knows the module of the points by the same name.
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("coupon_workers.") and module is not points and callable(vars(module).get("crash_point"))
    ]
