"""A PostgreSQL data folder: made once, completely or not at all, and freed of what a crash left in it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from coupon_workers.embedded.leftovers import end_leftovers
from coupon_workers.embedded.server_process import ServerProcess
from coupon_workers.embedded.system_user import SystemUser
from coupon_workers.errors import EmbeddedServerError

_PROGRAM = frozenset({"postgres"})
_LEFTOVER_GRACE_S = 10.0  # a fast shutdown writes a checkpoint


def folder_argument(folder: Path, user: SystemUser | None) -> str:
    """How PostgreSQL, started in ``folder``, is told of it.

    Another user may own the folder and yet not be allowed through the folders above it. The process is put into it
    before it changes its user, and ``/proc/self/cwd`` leads there without a way through those.
    """
    return "/proc/self/cwd" if user is not None and sys.platform == "linux" else str(folder)


def create_cluster(folder: Path, binaries: Path, user: SystemUser | None, *, log_path: Path, durable: bool) -> None:
    """Make ``folder`` with ``initdb`` unless it is there. A half-made one of a crash is thrown away.

    UTF-8, with PostgreSQL's own C.UTF-8 collation, so that indexes do not depend on the machine's locales.

    Raises ``EmbeddedServerError`` with initdb's words when it fails, and when ``folder`` holds something else.
    """
    if (folder / "PG_VERSION").exists():
        return
    unfinished = folder.with_name(folder.name + ".unfinished")
    if folder.exists() and any(folder.iterdir()):
        raise EmbeddedServerError(f"{folder} holds something that is no PostgreSQL data; move it away, and start again")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    if user:
        os.chown(unfinished, user.uid, user.gid)
    _initdb(unfinished, binaries, user, log_path, durable)
    unfinished.replace(folder)


def _initdb(folder: Path, binaries: Path, user: SystemUser | None, log_path: Path, durable: bool) -> None:
    command = [
        str(binaries / "initdb"),
        f"--pgdata={folder_argument(folder, user)}",
        "--username=postgres",
        "--auth-local=trust",  # the socket's folder is closed to everyone else
        "--auth-host=reject",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
    ]
    process = ServerProcess("initdb", log_path)
    process.start(command if durable else [*command, "--no-sync"], cwd=folder, user=user)
    if process.wait() != 0:
        raise EmbeddedServerError(f"initdb could not make {folder}{process.log_tail()}")


def free_cluster(folder: Path, socket: Path) -> None:
    """End servers that outlived their owner, and remove lock files that name a process which is none of theirs.

    ``socket`` may lie elsewhere. PostgreSQL refuses to start while such a file names a living process, even when the
    number was given to another program since; it also refuses while a back end of a killed server still holds the
    shared memory.
    """
    end_leftovers(folder, _PROGRAM, signal.SIGINT, _LEFTOVER_GRACE_S)
    for stale in (folder / "postmaster.pid", socket.with_name(f"{socket.name}.lock"), socket):
        stale.unlink(missing_ok=True)
