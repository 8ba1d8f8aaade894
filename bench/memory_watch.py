"""The most memory that this process and one of PostgreSQL's had of their own, looked at many times a second."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

_LOOK_EVERY_S = 0.02


class MemoryWatch:
    """Use it in a ``with`` block. Shared buffers are not counted: only what a process has for itself (RssAnon)."""

    def __init__(self, postgres_pid: int) -> None:
        self._postgres = psutil.Process(postgres_pid)
        self._before_kib = _own_kib(psutil.Process().pid)
        self._grown_kib = self._backend_kib = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def numbers(self) -> dict[str, float]:
        """MiB: by how much this process grew, and the largest of PostgreSQL's."""
        return {"grown_mib": self._grown_kib / 1024, "backend_mib": self._backend_kib / 1024}

    def _look(self) -> None:
        own = psutil.Process().pid
        while True:
            self._grown_kib = max(self._grown_kib, _own_kib(own) - self._before_kib)
            for process in self._postgres.children():
                self._backend_kib = max(self._backend_kib, _own_kib(process.pid))
            if self._over.wait(_LOOK_EVERY_S):
                return


def _own_kib(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    return 0
