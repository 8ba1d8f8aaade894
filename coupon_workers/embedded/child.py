"""One process of the Procfile, with everything it started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from coupon_workers.embedded.output import Output
from coupon_workers.embedded.spawner import spawn

_POLL_S = 0.02
_ORPHAN_GRACE_S = 3.0  # for workers whose master was killed; they hold ports and messages the next one wants


class ChildProcess:
    """``command`` in a process group of its own, run in ``cwd`` with ``env``; it may be started again after its end."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], cwd: Path, output: Output) -> None:
        self.name = name
        self._command = command
        self._env = env
        self._cwd = cwd
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = False

    @property
    def pid(self) -> int | None:
        """The process we started, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start it. It gets SIGTERM when we end, however we end (Linux)."""
        sink = self._output.opened(self.name)
        process = spawn(self._command, cwd=self._cwd, env=self._env, death_signal=signal.SIGTERM, output=sink)
        if not isinstance(sink, int):
            sink.close()
        self._output.started(self.name, process)
        self._asked = False
        self._process = process

    def wait(self) -> int:
        """Wait for its end, and end what is left of its group. Its exit code, negative for a signal."""
        if self._process is None:
            return 0
        process = self._process
        code = process.wait()
        end_group(process.pid, _ORPHAN_GRACE_S)
        self._process = None  # its number is no longer ours to signal
        return code

    def terminate(self) -> None:
        """Ask it to end, once: masters take a second SIGTERM for impatience and drop their work.

        Only itself is asked: a master tells its workers in its own way.
        """
        process = self._process
        if process is not None and not self._asked:
            self._asked = True
            process.send_signal(signal.SIGTERM)

    def ended_within(self, wait_s: float) -> bool:
        """Whether it has ended, after at most ``wait_s``."""
        process = self._process
        if process is None:
            return True
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self, grace_s: float = 0.0) -> None:
        """Ask it to end; after ``grace_s`` kill it with all of its group."""
        process = self._process
        if process is None:
            return
        self.terminate()
        self.ended_within(grace_s)
        end_group(process.pid, 0.0)
        process.wait()


def end_group(group: int, grace_s: float) -> None:
    """End the processes of a group: SIGTERM when there is time, SIGKILL after ``grace_s``."""
    if grace_s > 0 and _signal_group(group, signal.SIGTERM):
        deadline = time.monotonic() + grace_s
        while _is_alive(group) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS answers the second for a group of zombies
        return False
    return True


def _is_alive(group: int) -> bool:
    return _signal_group(group, 0) and any(_is_member(process, group) for process in psutil.process_iter())


def _is_member(process: psutil.Process, group: int) -> bool:
    # Zombies do not count: an orphan's new parent may never take notice of its end.
    with suppress(psutil.Error, OSError):
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    return False
