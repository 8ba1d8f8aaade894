"""A worker process does not outlive the process that made it."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_POLL_S = 1.0


def end_with_parent(death_signal: signal.Signals = signal.SIGKILL) -> None:
    """Have this process ended when its parent ends, and at once when that has happened already.

    For the workers of Granian and Dramatiq, whose masters end them in every case but ``kill -9``: then they would go on
    unwatched, beside those of the next master. Call it in the worker, from its main thread: Linux forgets the request
    with the thread that made it.

    The signal is SIGKILL: a worker without a master may be past listening (SIGTERM waits for Granian's event loop and
    for Dramatiq's running actors), and every effect is one transaction or one script: a kill
    undoes it or leaves it whole.
    """
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(parent, death_signal), name="parent-watch", daemon=True).start()
    if os.getppid() != parent or _is_orphan():
        os.kill(os.getpid(), death_signal)


def _is_orphan() -> bool:
    # The number of the parent proves nothing: 1 may be the init process or, in a container, our own master.
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def _watch(parent: int, death_signal: signal.Signals) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    os.kill(os.getpid(), death_signal)
