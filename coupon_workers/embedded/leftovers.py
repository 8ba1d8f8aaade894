"""Server processes of a folder whose owner is gone: found by what they are, never by a number in a file alone."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

_KILL_WAIT_S = 10.0


def end_leftovers(folder: Path, names: frozenset[str], polite: signal.Signals, grace_s: float) -> None:
    """End every process named in ``names`` that works in ``folder``: ``polite`` first, SIGKILL after ``grace_s``.

    Only the first of a family is asked politely; its children are its own affair until the time is up.
    The caller holds the folder's lock, so that no owner of these processes is alive.
    """
    family = list(processes_in(folder, names))
    members = {process.pid for process in family}
    for process in family:
        with suppress(psutil.NoSuchProcess):
            if process.ppid() not in members:
                process.send_signal(signal.SIGKILL if _is_back_end(process) else polite)
    psutil.wait_procs(family, timeout=grace_s)
    remaining = list(processes_in(folder, names))  # looked for again: a family may have grown meanwhile
    for process in remaining:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(remaining, timeout=_KILL_WAIT_S)


def processes_in(folder: Path, names: frozenset[str]) -> Iterator[psutil.Process]:
    """The living processes named in ``names`` whose working folder is ``folder``."""
    if not folder.exists():
        return
    wanted = _identity(folder.stat())
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.name() in names and process.status() != psutil.STATUS_ZOMBIE and _place(process) == wanted:
                yield process


def _place(process: psutil.Process) -> tuple[int, int]:
    # The link itself is right in every mount namespace; its text is not.
    return _identity(Path(f"/proc/{process.pid}/cwd" if sys.platform == "linux" else process.cwd()).stat())


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is_back_end(process: psutil.Process) -> bool:
    # Of PostgreSQL, without its postmaster: it would take SIGINT for "cancel the query" and stay. It has nothing to
    # save; the next start recovers from the log.
    return any(word.startswith("postgres: ") for word in process.cmdline()[:1])
