"""Starts child processes that end with this process, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from coupon_workers.embedded.system_user import SystemUser

_LAUNCHER = Path(__file__).with_name("launcher.py")


def _new_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


# Linux sends the death signal when the *thread* that forked ends: one that lives as long as the process forks all.
_thread = _new_thread()


def _after_fork() -> None:
    global _thread
    _thread = _new_thread()  # threads do not cross a fork


os.register_at_fork(after_in_child=_after_fork)


def spawn(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    death_signal: signal.Signals,
    output: int | IO[bytes],
    user: SystemUser | None = None,
) -> subprocess.Popen[bytes]:
    """Start ``command`` in a session of its own, so that a Ctrl-C on our terminal reaches only us.

    ``death_signal`` is what it gets when this process ends, even by ``kill -9`` (Linux; elsewhere nothing is sent).
    ``output`` takes both of its streams. ``cwd`` is entered before the change to ``user``, who need not reach it.
    A command that cannot be run ends with code 127 and says why on its output.
    """
    identity = (str(user.uid), str(user.gid)) if user else ("-", "-")
    launcher = (sys.executable, "-I", "-S", str(_LAUNCHER), str(int(death_signal)), str(os.getpid()), *identity)
    return _thread.submit(
        subprocess.Popen[bytes],
        [*launcher, *command],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ).result()
