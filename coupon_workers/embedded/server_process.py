"""One server as our child: started, watched, stopped, its log at hand when it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from coupon_workers.embedded.spawner import spawn
from coupon_workers.embedded.system_user import SystemUser
from coupon_workers.errors import EmbeddedServerError

_LOG_LIMIT_BYTES = 10 * 1024 * 1024  # a longer log is put aside at the next start; one old one is kept
_TAIL_BYTES = 4_000
_POLL_S = 0.02
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")


def server_environment() -> dict[str, str]:
    """What a server gets of our environment: no locale, no PG* variable, no secret."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", **passed_on}


class ServerProcess:
    """A server process and its log file. One at a time; it may be started again after it ended."""

    def __init__(self, name: str, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        death_signal: signal.Signals = signal.SIGTERM,
        user: SystemUser | None = None,
    ) -> None:
        """Start it; whether it works is for :meth:`wait_until` to find out."""
        self._put_long_log_aside()
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            self._process = spawn(
                command, cwd=cwd, env=server_environment(), death_signal=death_signal, output=log, user=user
            )

    def wait_until(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Ask ``ready`` until it says so.

        Raises ``EmbeddedServerError`` with the end of the log when the server ends or ``timeout_s`` pass first.
        """
        deadline = time.monotonic() + timeout_s
        while not ready():
            if self.pid is None:
                raise EmbeddedServerError(f"{self.name} ended at its start{self.log_tail()}")
            if time.monotonic() > deadline:
                raise EmbeddedServerError(f"{self.name} did not answer within {timeout_s:g} s{self.log_tail()}")
            time.sleep(_POLL_S)

    def wait(self) -> int:
        """Wait for its end. Its exit code, negative for a signal; 0 when it was never started."""
        return self._process.wait() if self._process is not None else 0

    def stop(self, steps: Sequence[tuple[signal.Signals, float]]) -> None:
        """Send each signal and give it its seconds, then SIGKILL. Does nothing when it does not run."""
        for number, grace_s in (*steps, (signal.SIGKILL, None)):
            if self._process is None or self.pid is None:
                return
            self._process.send_signal(number)
            try:
                self._process.wait(grace_s)
            except subprocess.TimeoutExpired:
                continue

    def log_tail(self) -> str:
        """What it wrote last since its start, to follow a message; names the file."""
        with self.log_path.open("rb") as log:
            end = log.seek(0, 2)
            log.seek(max(self._log_start, end - _TAIL_BYTES))
            text = log.read().decode(errors="replace").strip()
        return f"; the end of {self.log_path}:\n{text}" if text else f"; {self.log_path} is empty"

    def _put_long_log_aside(self) -> None:
        if self.log_path.exists() and self.log_path.stat().st_size > _LOG_LIMIT_BYTES:
            self.log_path.replace(self.log_path.with_name(self.log_path.name + ".1"))
