"""Turns at the machine, as the workers of a run of tests take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest

from tests.support.machine_turn import MachineTurn

WAITED_S = 10.0


class Worker:
    """One worker with one test, which ends when it is told to."""

    def __init__(self, folder: Path, threads: ThreadPoolExecutor) -> None:
        self._turn = MachineTurn(folder)
        self._threads = threads
        self._began = Event()
        self._may_end = Event()
        self._test: Future[None] | None = None

    def begin(self, *, alone: bool = False) -> None:
        """Wait for a turn, and run the test."""
        self._test = self._threads.submit(self._run, alone)

    def runs(self, within_s: float = WAITED_S) -> bool:
        """Whether the test has begun by then."""
        return self._began.wait(within_s)

    def waits(self) -> bool:
        """Whether it has not begun so far: it would have done so at once."""
        return not self.runs(0.1)

    def end(self) -> None:
        """Let it end."""
        self._may_end.set()

    def _run(self, alone: bool) -> None:
        with self._turn.taken(alone=alone):
            self._began.set()
            self._may_end.wait(WAITED_S)


NewWorker = Callable[[], Worker]


@pytest.fixture
def new_worker(tmp_path: Path) -> Iterator[NewWorker]:
    """Makes workers of one run; whatever they do ends with the test."""
    with ThreadPoolExecutor(3) as threads, ExitStack() as ended:

        def made() -> Worker:
            worker = Worker(tmp_path, threads)
            ended.callback(worker.end)
            return worker

        yield made


def test_tests_run_beside_one_another(new_worker: NewWorker) -> None:
    """As many as there are workers."""
    workers = [new_worker() for _ in range(3)]

    for worker in workers:
        worker.begin()

    assert all(worker.runs() for worker in workers)


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (True, True)])
def test_one_that_is_alone_runs_beside_none(new_worker: NewWorker, first: bool, second: bool) -> None:
    """It waits for who was there before, and whoever comes later waits for it."""
    here, there = new_worker(), new_worker()
    here.begin(alone=first)
    assert here.runs()

    there.begin(alone=second)
    assert there.waits()
    here.end()

    assert there.runs()


def test_nobody_overtakes_one_that_waits_to_be_alone(new_worker: NewWorker) -> None:
    """However many there are still to come, it is the next."""
    running, alone, late = new_worker(), new_worker(), new_worker()
    running.begin()
    assert running.runs()
    alone.begin(alone=True)
    assert alone.waits()

    late.begin()
    running.end()

    assert alone.runs()
    assert late.waits()
    alone.end()
    assert late.runs()
