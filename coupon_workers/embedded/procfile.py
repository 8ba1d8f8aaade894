"""The Procfile: which processes an installation has, and the command of each."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import coupon_workers
from coupon_workers.errors import SettingsError

RELEASE = "release"
"""The entry that is run once, to its end, before the others start."""

BUILT_IN = """\
release: coupon-workers migrate
web: python -m web
worker: python -m actors
scheduler: python -m schedules
"""
"""What is run where no file is: an installed package has none. A test holds it equal to the repository's Procfile."""

_LINE = re.compile(r"([A-Za-z0-9_-]+):\s*(\S.*)")


@dataclass(frozen=True, slots=True)
class Procfile:
    """The commands by name, each as a list of words, and the folder they are run in."""

    commands: Mapping[str, list[str]]
    folder: Path

    @property
    def lasting(self) -> dict[str, list[str]]:
        """The processes that are kept running: all but ``release``."""
        return {name: command for name, command in self.commands.items() if name != RELEASE}

    @property
    def release(self) -> list[str] | None:
        """The command that is run once."""
        return self.commands.get(RELEASE)


def parse_procfile(text: str, folder: Path) -> Procfile:
    """Read ``name: command`` lines; blank lines and those that start with ``#`` say nothing. No shell is involved.

    Raises ``SettingsError`` naming the line that cannot be read.
    """
    commands: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise SettingsError(f"Procfile, line {number}: not `name: command`: {line.strip()}")
        name, command = match.groups()
        if name in commands:
            raise SettingsError(f"Procfile, line {number}: {name} appears twice")
        commands[name] = _words(command, number)
    return Procfile(commands, folder)


def read_procfile(path: Path) -> Procfile:
    """The Procfile at ``path``; its commands are run in its folder. Raises ``SettingsError`` as the parser does."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from None
    return parse_procfile(text, path.resolve().parent)


def find_procfile() -> Procfile:
    """The Procfile of the project this package lies in, or of the working folder, or what is built in.

    Raises ``SettingsError`` when the file cannot be read.
    """
    project = Path(coupon_workers.__file__).resolve().parents[1]
    for folder in (project, Path.cwd()):
        if (folder / "Procfile").is_file():
            return read_procfile(folder / "Procfile")
    return parse_procfile(BUILT_IN, Path.cwd())


def _words(command: str, number: int) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SettingsError(f"Procfile, line {number}: {error}: {command}") from None
    # The interpreter that runs us has the packages; a `python` on the PATH may not.
    return [sys.executable, *words[1:]] if words[0] in {"python", "python3"} else words
