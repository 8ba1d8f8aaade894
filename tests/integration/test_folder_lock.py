"""The lock of a data folder is its owner's, and nobody's once he is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from coupon_workers.embedded.folder_lock import FolderLock, holder

OWNER = """
import os, sys, time
from pathlib import Path
from coupon_workers.embedded.folder_lock import FolderLock

FolderLock(Path(sys.argv[1])).acquire()
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(600)
sys.stdin.read()
"""


def test_a_forked_child_does_not_keep_the_lock_of_a_dead_owner(tmp_path: Path) -> None:
    """It has the parent's files, and with them what the kernel would take for the lock."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    child = int(owner.stdout.readline())
    try:
        held_by = holder(tmp_path)
        owner.kill()
        owner.wait()

        lock = FolderLock(tmp_path)
        lock.acquire()

        assert (owner.pid, os.getpid()) == (held_by, holder(tmp_path))
        lock.release()
    finally:
        os.kill(child, signal.SIGKILL)
        owner.communicate()
