"""A disk that is full for one server: each file it writes may not grow beyond where it stands (FAULTS 19).

A limit on the size of its files, which any user may set for his own processes. What would grow a file fails as on a
full disk, but for the word that says why; and what has been written stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest

from tests.support.fault_hold import lives

_NOTHING, _AS_EVER = "1", "unlimited"


def fill_disk_of(pids: Sequence[int]) -> None:
    """Have processes, and those that they make, write nothing more; who has ended by now is left out."""
    _limit(pids, _NOTHING)


@contextmanager
def disk_full(pids: Sequence[int]) -> Iterator[None]:
    """The disk of these processes is full while the block runs."""
    fill_disk_of(pids)
    try:
        yield
    finally:
        _limit(pids, _AS_EVER)


def _limit(pids: Sequence[int], longest: str) -> None:
    program = shutil.which("prlimit")
    if program is None:
        pytest.skip("there is no prlimit (util-linux) to make a disk full with")
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            done = subprocess.run([program, "--pid", str(pid), f"--fsize={longest}:"], check=False, **_owner(pid))
            assert done.returncode == 0 or not lives(pid)


def _owner(pid: int) -> dict[str, Any]:
    """Who may limit a process: its own user. A root without capabilities may not, where it is another's."""
    process = psutil.Process(pid)
    if os.geteuid() != 0 or process.uids().real == 0:
        return {}
    return {"user": process.uids().real, "group": process.gids().real, "extra_groups": []}
