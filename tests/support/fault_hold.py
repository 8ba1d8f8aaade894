"""Holding what was killed down: who keeps it alive waits, for as long as a test says, before it is started again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from coupon_workers.embedded.servers import EmbeddedServer

START_S = 30.0

WITH_SETTINGS = 'set -a; . "$0"; set +a; while [ -e "$0.held" ]; do sleep 0.05; done; exec "$@"'
"""Shell: read the settings of one process from a file, wait while it is held down, become the process."""


@contextmanager
def held_process(settings: Path) -> Iterator[None]:
    """A process that is started by ``WITH_SETTINGS`` with the file ``settings`` waits while the block runs."""
    mark = settings.with_name(f"{settings.name}.held")
    mark.touch()
    try:
        yield
    finally:
        mark.unlink()


@contextmanager
def held_server(server: EmbeddedServer) -> Iterator[None]:
    """A server that ends in the block is started again, and answers, after it."""
    released, answers = threading.Event(), threading.Event()
    start = server.start

    def start_when_released() -> None:
        released.wait()
        start()
        answers.set()

    # On the object, where its keeper looks for it: the class and everybody else's servers stay as they are.
    vars(server)["start"] = start_when_released
    try:
        yield
    finally:
        released.set()
        assert answers.wait(START_S), f"{server.name} did not start again"
        del vars(server)["start"]


def is_copy(child: psutil.Process, command: list[str]) -> bool:
    """Whether a process runs the same command as its master."""
    with suppress(psutil.Error):
        return bool(child.cmdline() == command)
    return False


def descendants(pid: int) -> list[int]:
    """Everything below a process."""
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


def lives(pid: int) -> bool:
    """Whether a process runs; one that only waits to be taken notice of does not."""
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False
