"""The user PostgreSQL runs as when we are root, which it refuses to be."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_NAME = "coupon_postgres"
_FALLBACK = "nobody"
_ATTEMPTS = 3  # useradd fails while another one holds the lock of the user table


@dataclass(frozen=True, slots=True)
class SystemUser:
    """A user of the machine, by numbers: the owner of a folder may have no name here."""

    uid: int
    gid: int


def user_for(folder: Path) -> SystemUser | None:
    """Who may own ``folder`` and run its server: ``None`` means we ourselves, who are not root.

    As root it is the folder's owner, so that data made by a plain user stay usable by both; for a new folder a user
    made for the purpose, or ``nobody`` where none can be made.
    """
    if os.geteuid() != 0:
        return None
    if folder.exists() and folder.stat().st_uid != 0:
        return SystemUser(folder.stat().st_uid, folder.stat().st_gid)
    return _named(_NAME) or _create() or _named(_FALLBACK)


def _named(name: str) -> SystemUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return SystemUser(entry.pw_uid, entry.pw_gid)


def _create() -> SystemUser | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return None
    command = [useradd, "--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/false", _NAME]
    for _ in range(_ATTEMPTS):
        subprocess.run(command, capture_output=True, check=False)
        if user := _named(_NAME):
            return user
    return None
