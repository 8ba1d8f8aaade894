"""A load of many clients on one front, from the first claim until it is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.fault_client import FaultClient, HistoryHttp
from tests.support.fault_plan import FaultPlan
from tests.support.fault_wait import until
from tests.support.history import History

WARM_ANSWERS = 60
"""Answers heard before a fault begins: every web process has seen the key then."""


@dataclass(frozen=True, slots=True)
class Front:
    """Where to ask, and the key to show."""

    port: int
    key: str


class Load:
    """The clients of ``plan``, who together take ``rate`` steps a second."""

    def __init__(self, front: Front, plan: FaultPlan, rate: float, path: Path) -> None:
        self.plan = plan
        self.history = History(path)
        self._stop = threading.Event()
        self._clients = [
            FaultClient(
                number,
                HistoryHttp(front.port, front.key, self.history),
                plan.steps(number),
                self._stop,
                rate / plan.clients,
            )
            for number in range(plan.clients)
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """The block runs while the load does, from when the first answers have been heard."""
        for client in self._clients:
            client.start()
        try:
            until(lambda: self.history.answers >= WARM_ANSWERS)
            yield
        finally:
            self._stop.set()
            for client in self._clients:
                client.join()

    def wait_for(self, answers: int, within_s: float = 30.0) -> None:
        """Return when so many more answers have been heard."""
        wanted = self.history.answers + answers
        until(lambda: self.history.answers >= wanted, within_s)
