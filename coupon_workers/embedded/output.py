"""What child processes write, where we want it: in one stream with their names before it, or in a file for each."""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol, TextIO

_COLOURS = (36, 33, 32, 35, 34, 31)  # cyan, yellow, green, magenta, blue, red
_LONGEST_LINE_BYTES = 64 * 1024  # a longer one is passed on in pieces
_NAME_WIDTH = 9


class Output(Protocol):
    """Takes the output of named processes."""

    def opened(self, name: str) -> int | IO[bytes]:
        """What the process ``name`` is started with as its output: ``PIPE`` or a file."""

    def started(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Called when it runs."""

    def say(self, name: str, line: str) -> None:
        """A line of our own about ``name``."""


class PrefixedOutput:
    """All in one stream, each line after the coloured name of its process. Colours for terminals only."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._names: dict[str, int] = {}

    def opened(self, name: str) -> int:
        return subprocess.PIPE

    def started(self, name: str, process: subprocess.Popen[bytes]) -> None:
        threading.Thread(target=self._pass_on, args=(name, process.stdout), name=f"{name}-output", daemon=True).start()

    def say(self, name: str, line: str) -> None:
        with (
            self._lock,
            suppress(OSError, ValueError),
        ):  # nobody reads it any more: the process must run on all the same
            self._stream.write(f"{self._prefix(name)} {line}\n")
            self._stream.flush()

    def _pass_on(self, name: str, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(_LONGEST_LINE_BYTES):
                self.say(name, line.decode(errors="replace").rstrip("\r\n"))

    def _prefix(self, name: str) -> str:
        text = f"{name:<{_NAME_WIDTH}} |"
        colour = _COLOURS[self._names.setdefault(name, len(self._names)) % len(_COLOURS)]
        return f"\x1b[{colour}m{text}\x1b[0m" if self._stream.isatty() else text


class LogFolder:
    """A file ``<name>.log`` for each process in ``folder``, which is made when missing; appended to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def opened(self, name: str) -> IO[bytes]:
        return (self._folder / f"{name}.log").open("ab")

    def started(self, name: str, process: subprocess.Popen[bytes]) -> None:
        pass

    def say(self, name: str, line: str) -> None:
        with suppress(OSError), self.opened(name) as log:  # a full disk: whoever says it has more to do than to say it
            log.write(f"{line}\n".encode())
