"""Becomes another program, after tying its life to ours. Run by path, in an isolated interpreter.

It stands between ``fork`` and the server because Python code in a forked child of a process with threads may
deadlock; a fresh interpreter cannot. Usage: ``launcher.py DEATH_SIGNAL PARENT UID GID COMMAND…``; ``-`` keeps the user.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1
_NOT_EXECUTABLE = 127  # what a shell answers for a command it cannot run


def _become(uid: str, gid: str) -> None:
    if uid == "-":
        return
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))


def _die_with(parent: int, death_signal: int) -> None:
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the request: no signal will come
        os._exit(1)


def main(arguments: list[str]) -> None:
    """Change the user, ask for the signal (a change of user takes the request back), become the command."""
    death_signal, parent, uid, gid, *command = arguments
    _become(uid, gid)
    _die_with(int(parent), int(death_signal))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(_NOT_EXECUTABLE)


if __name__ == "__main__":
    main(sys.argv[1:])
