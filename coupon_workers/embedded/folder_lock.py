"""One owner of a data folder at a time, for as long as its process lives."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from coupon_workers.errors import EmbeddedServerError

_FILE = "servers.lock"
_RETRIES = 10  # a look at the lock (``holder``) holds it for a moment
_RETRY_S = 0.03

_held: set[int] = set()


def _after_fork() -> None:
    # A forked child shares the lock, and would keep it when its parent is dead.
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)


class FolderLock:
    """A lock on ``folder`` which the kernel gives up when the holder dies, however it dies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take it, and write our process number into the lock file.

        Raises ``EmbeddedServerError`` naming the holder's process when another has it.
        """
        descriptor = os.open(self._folder / _FILE, os.O_RDWR | os.O_CREAT, 0o644)
        if not _try_lock(descriptor):
            os.close(descriptor)
            raise _in_use(self._folder, holder(self._folder))
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        _held.add(descriptor)
        self._descriptor = descriptor

    @property
    def is_held(self) -> bool:
        """Whether we hold it."""
        return self._descriptor is not None and self._descriptor in _held

    def release(self) -> None:
        """Give it up. Does nothing when it is not held."""
        if self._descriptor is not None and self._descriptor in _held:
            _held.remove(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = None


def holder(folder: Path) -> int | None:
    """The living process that holds the lock of ``folder``; ``None`` when nobody does."""
    try:
        descriptor = os.open(folder / _FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(descriptor, 32, 0).strip() or 0) or None
    finally:
        os.close(descriptor)
    return None


def refuse_held(folder: Path) -> None:
    """Raises ``EmbeddedServerError`` naming the holder's process when somebody holds the lock of ``folder``."""
    with suppress(OSError):  # a folder that cannot be read is told of when it is to be used
        if (pid := holder(folder)) is not None:
            raise _in_use(folder, pid)


def _in_use(folder: Path, pid: int | None) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"{folder} is in use by process {pid or '(ending)'}: "
        "stop that one, or choose another folder with COUPON_DATA_DIR"
    )


def _try_lock(descriptor: int) -> bool:
    for _ in range(_RETRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_RETRY_S)
        else:
            return True
    return False
