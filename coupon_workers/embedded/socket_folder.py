"""Where a server's Unix socket lies: beside its data, or in a short private folder when that path is too long."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from coupon_workers.embedded.system_user import SystemUser
from coupon_workers.errors import EmbeddedServerError

LONGEST_PATH = 100
"""Bytes of a socket's path: the kernel allows 107 (Linux) or 103 (macOS)."""


def socket_folder(beside: Path, file_name: str, user: SystemUser | None = None) -> Path:
    """``beside``, or a folder of ``user`` with mode 0700 under the temporary folder, always the same for ``beside``.

    Raises ``EmbeddedServerError`` when that folder exists and is another's: whoever made it could read our traffic.
    """
    if fits(beside / file_name):
        return beside
    return _short_folder(beside, user)


def remove_socket_folder(folder: Path, beside: Path) -> None:
    """Remove a short folder after its server has stopped; ``beside`` itself stays."""
    if folder != beside and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def fits(path: Path) -> bool:
    """Whether servers and clients can use ``path``; libpq takes a comma for the end of a host."""
    return len(os.fsencode(path)) <= LONGEST_PATH and "," not in str(path)


def _short_folder(beside: Path, user: SystemUser | None) -> Path:
    owner = user.uid if user else os.geteuid()
    name = f"coupon-{owner}-{hashlib.sha256(os.fsencode(beside)).hexdigest()[:12]}"
    folder = _short_root() / name
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        if user:
            os.chown(folder, user.uid, user.gid)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
        raise EmbeddedServerError(f"{folder} is not a private folder of user {owner}; remove it and start again")
    return folder


def _short_root() -> Path:
    # Any user may enter /tmp; a TMPDIR of root's own may be closed to the user of PostgreSQL, and long as well.
    return Path("/tmp") if os.access("/tmp", os.W_OK) else Path(tempfile.gettempdir())
