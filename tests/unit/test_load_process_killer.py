"""Killing processes at random: only those named, and each entry alike."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from coupon_workers.load.process_killer import ProcessKiller


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Three processes that sleep."""
    started = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) for _ in range(3)]
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_the_named_processes_are_killed_and_no_other(sleepers: list[subprocess.Popen[bytes]]) -> None:
    """Two entries with a process each die by SIGKILL and are counted; the third process lives."""
    named = {"web": sleepers[0], "worker": sleepers[1]}
    killer = ProcessKiller(
        lambda: {name: [process.pid] if process.poll() is None else [] for name, process in named.items()},
        every_s=0.02,
        seed=1,
    )

    killer.start()
    for process in named.values():
        process.wait(10)
    killer.stop()

    assert [-signal.SIGKILL, -signal.SIGKILL, None] == [process.poll() for process in sleepers]
    assert {"web", "worker"} == set(killer.killed)


def test_a_killer_whose_time_is_over_kills_no_more(sleepers: list[subprocess.Popen[bytes]]) -> None:
    """Its thread ends by itself."""
    killer = ProcessKiller(lambda: {"web": [sleepers[0].pid]}, every_s=0.02, seed=1, within_s=0)

    killer.start()
    killer.join()

    assert sleepers[0].poll() is None
    assert not killer.killed


def test_nothing_is_killed_after_the_stop(sleepers: list[subprocess.Popen[bytes]]) -> None:
    """A killer that is stopped before its first kill has done nothing."""
    killer = ProcessKiller(lambda: {"web": [sleepers[0].pid]}, every_s=60, seed=1)
    began = time.monotonic()

    killer.start()
    killer.stop()

    assert sleepers[0].poll() is None
    assert not killer.killed
    assert time.monotonic() - began < 10
