"""``servers.json``: what runs in a data folder, for other shells to find."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from coupon_workers.embedded.folder_lock import holder

_FILE = "servers.json"


def write_servers_file(folder: Path, settings: Mapping[str, str], pids: Mapping[str, int]) -> None:
    """Write it in one step, readable by its owner only: addresses may hold passwords."""
    unfinished = folder / f"{_FILE}.unfinished"
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"owner": os.getpid(), "pids": dict(pids), "settings": dict(settings)}, file, indent=2)
    unfinished.replace(folder / _FILE)


def remove_servers_file(folder: Path) -> None:
    """Remove it; a missing one is fine."""
    (folder / _FILE).unlink(missing_ok=True)


def running_settings(folder: Path) -> dict[str, str] | None:
    """The variables (``COUPON_DATABASE_URL``…) that lead to what runs in ``folder``; ``None`` when nothing does.

    A file that a crash left behind does not count: its owner no longer holds the folder's lock.
    """
    if holder(folder) is None:
        return None
    try:
        content = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:  # it is just starting or stopping
        return None
    return {str(name): str(value) for name, value in content["settings"].items()}
