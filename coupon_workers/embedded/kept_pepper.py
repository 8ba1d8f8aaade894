"""The pepper of an installation whose database is embedded: made once, kept beside the data.

Beside and not within: whoever steals a dump of the database has not got it. A backup of one needs the other.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from coupon_workers.errors import EmbeddedServerError

CODE_PEPPER = "COUPON_CODE_PEPPER"

_FILE = "code-pepper"


def kept_pepper(folder: Path) -> str:
    """The pepper of ``folder``, made if there is none. The caller has the folder's lock.

    Raises ``EmbeddedServerError`` when it cannot be read or written: codes may hang on the one that is there.
    """
    path = folder / _FILE
    try:
        return _read(path) or _make(path)
    except (OSError, UnicodeDecodeError) as error:
        raise EmbeddedServerError(f"the pepper of redeem codes, {path}, cannot be used: {error}") from error


def _read(path: Path) -> str:
    with suppress(FileNotFoundError):
        return path.read_text(encoding="ascii").strip()
    return ""


def _make(path: Path) -> str:
    made = secrets.token_hex(32)
    unfinished = path.with_name(f"{_FILE}.unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(made + "\n")
        file.flush()
        os.fsync(file.fileno())  # a pepper that is lost takes every code with it
    unfinished.replace(path)
    return made
