"""Whatever process of ours ends without leave is started again; stopping is done in order, and leaves nothing."""

from __future__ import annotations

import io
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest

from coupon_workers.embedded import keeper
from coupon_workers.embedded import supervisor as supervisor_module
from coupon_workers.embedded.output import LogFolder, PrefixedOutput
from coupon_workers.embedded.procfile import parse_procfile
from coupon_workers.embedded.supervisor import Supervisor
from coupon_workers.errors import EmbeddedServerError

# A master with one worker: on SIGTERM it notes its name and ends, and the worker with it.
MASTER = """
import os, signal, subprocess, sys, time
name = sys.argv[1]
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
def end(*_):
    worker.kill()
    with open("ended.txt", "a") as file:
        file.write(name + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("runs", flush=True)
while True:
    time.sleep(600)
"""
DEAF = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('runs', flush=True)\ntime.sleep(600)\n"
)
# Takes longer to end than it is given, and notes each time that it is asked to.
SLOW = """
import signal, time
def note(*_):
    with open("asked.txt", "a") as file:
        file.write("asked\\n")
signal.signal(signal.SIGTERM, note)
print("runs", flush=True)
while True:
    time.sleep(600)
"""


def eventually(holds: Callable[[], bool], timeout_s: float = 15) -> None:
    """Wait until ``holds``."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


class CountedLogs(LogFolder):
    """Counts how often a log was to be opened."""

    opens = 0

    def opened(self, name: str) -> IO[bytes]:
        """As ever."""
        self.opens += 1
        return super().opened(name)


class Stage:
    """A folder of stand-in programs, and the supervisors that run them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stream = io.StringIO()
        self.started: list[Supervisor] = []
        (folder / "master.py").write_text(MASTER)
        (folder / "deaf.py").write_text(DEAF)

    def run(self, procfile: str) -> Supervisor:
        """Run it, and wait until each of its processes has said so."""
        supervisor = Supervisor(parse_procfile(procfile, self.folder), {}, PrefixedOutput(self.stream))
        self.started.append(supervisor)
        supervisor.start()
        eventually(lambda: self.lines().count("runs") == len(procfile.splitlines()))
        return supervisor

    def lines(self) -> list[str]:
        """What the processes wrote, without their names."""
        return [line.partition("| ")[2] for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Stopped in the end, by force."""
    stage = Stage(tmp_path)
    yield stage
    for supervisor in stage.started:
        supervisor.stop(grace_s=0)


def test_a_killed_process_is_started_again(stage: Stage) -> None:
    """Within a second, for a first time; the others are left alone."""
    supervisor = stage.run("web: python master.py web\nworker: python master.py worker\n")
    before = supervisor.pids()

    psutil.Process(before["web"]).kill()

    eventually(lambda: supervisor.pids().get("web", before["web"]) != before["web"])
    eventually(lambda: stage.lines().count("runs") == 3)
    assert supervisor.pids()["worker"] == before["worker"]
    assert "ended with -9; it is started again in 0.2 s" in stage.lines()


def test_the_workers_of_a_killed_master_are_ended(stage: Stage) -> None:
    """They would hold the port, and take work, beside those of the next master."""
    supervisor = stage.run("web: python master.py web\n")
    master, *workers = (psutil.Process(pid) for pid in supervisor.process_tree()["web"])
    assert len(workers) == 1

    master.kill()

    assert psutil.wait_procs(workers, timeout=10)[1] == []


def test_processes_end_in_order(stage: Stage) -> None:
    """The front first, so that no new work comes in; then the scheduler; the workers last."""
    supervisor = stage.run(
        "worker: python master.py worker\nscheduler: python master.py scheduler\nweb: python master.py web\n"
    )
    everyone = [psutil.Process(pid) for tree in supervisor.process_tree().values() for pid in tree]

    supervisor.stop()

    assert psutil.wait_procs(everyone, timeout=5)[1] == []
    assert (stage.folder / "ended.txt").read_text().split()[0] == "web"
    assert sorted((stage.folder / "ended.txt").read_text().split()) == ["scheduler", "web", "worker"]
    assert supervisor.pids() == {}


def test_a_process_that_does_not_listen_is_killed_in_the_end(stage: Stage) -> None:
    """After the time that all have together."""
    supervisor = stage.run("worker: python deaf.py\n")
    (deaf,) = (psutil.Process(pid) for pid in supervisor.pids().values())

    supervisor.stop(grace_s=0.2)

    assert psutil.wait_procs([deaf], timeout=5)[1] == []


def test_a_process_is_asked_to_end_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masters take a second SIGTERM for impatience, and drop their work."""
    monkeypatch.setattr(supervisor_module, "_FRONT_GRACE_S", 0.3)  # the front is waited for, and then with all others
    (stage.folder / "slow.py").write_text(SLOW)
    supervisor = stage.run("web: python slow.py\n")

    supervisor.stop(grace_s=1.0)

    assert ["asked"] == (stage.folder / "asked.txt").read_text().split()


def test_a_process_that_ends_at_once_is_named(stage: Stage) -> None:
    """It is tried again at growing intervals, and whoever waits for it is told."""
    supervisor = Supervisor(parse_procfile("web: python -c 1/0\n", stage.folder), {}, PrefixedOutput(stage.stream))
    stage.started.append(supervisor)
    supervisor.start()

    def given_up() -> bool:
        try:
            supervisor.check_alive()
        except EmbeddedServerError as error:
            return str(error) == "web ended 3 times; its own output says why"
        return False

    eventually(given_up)
    delays = [line.split()[-2] for line in stage.lines() if line.startswith("ended with 1")]
    assert delays == ["0.2", "0.4", "0.8"]
    assert "ZeroDivisionError: division by zero" in stage.lines()


def test_a_command_that_does_not_exist_is_named(stage: Stage) -> None:
    """In the output of the process it should have been."""
    supervisor = Supervisor(parse_procfile("web: no-such-program\n", stage.folder), {}, PrefixedOutput(stage.stream))
    stage.started.append(supervisor)

    supervisor.start()

    eventually(lambda: "no-such-program: No such file or directory" in stage.lines())


def test_each_line_follows_the_name_of_its_process(stage: Stage) -> None:
    """Without colours where no terminal is."""
    stage.run("web: python master.py web\n")

    assert "web       | runs\n" in stage.stream.getvalue()


def test_output_can_go_to_a_file_for_each_process(stage: Stage) -> None:
    """With what the supervisor has to say about it."""
    logs = stage.folder / "logs"
    supervisor = Supervisor(parse_procfile("web: python master.py web\n", stage.folder), {}, LogFolder(logs))
    stage.started.append(supervisor)
    supervisor.start()
    eventually(lambda: "runs" in (logs / "web.log").read_text())

    psutil.Process(supervisor.pids()["web"]).send_signal(signal.SIGKILL)

    eventually(lambda: (logs / "web.log").read_text().count("runs") == 2)
    assert "ended with -9" in (logs / "web.log").read_text()


def test_a_process_is_started_again_though_its_end_cannot_be_noted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: whoever watches it goes on, and it is back once there is room."""
    monkeypatch.setattr(keeper, "LONGEST_DELAY_S", 0.1)
    logs, aside = stage.folder / "logs", stage.folder / "aside"
    output = CountedLogs(logs)
    supervisor = Supervisor(parse_procfile("web: python master.py web\n", stage.folder), {}, output)
    stage.started.append(supervisor)
    supervisor.start()
    eventually(lambda: "runs" in (logs / "web.log").read_text())
    logs.rename(aside)

    psutil.Process(supervisor.pids()["web"]).kill()
    eventually(lambda: output.opens > 3)
    aside.rename(logs)

    eventually(lambda: (logs / "web.log").read_text().count("runs") == 2)
