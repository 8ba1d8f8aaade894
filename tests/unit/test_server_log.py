"""The log of an embedded server does not grow for ever, and its end is told when the server fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from coupon_workers.embedded import server_process
from coupon_workers.embedded.server_process import ServerProcess


def run(log: Path, *command: str) -> ServerProcess:
    """A server that has ended."""
    process = ServerProcess("echo", log)
    process.start(command, cwd=log.parent)
    process.wait()
    return process


def test_a_long_log_is_put_aside_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One old one is kept."""
    monkeypatch.setattr(server_process, "_LOG_LIMIT_BYTES", 10)
    log = tmp_path / "echo.log"

    for word in ("the first one", "short", "and the third", "the last"):
        run(log, "echo", word)

    assert "the last\n" == log.read_text()
    assert "short\nand the third\n" == log.with_name("echo.log.1").read_text()


def test_only_what_was_written_since_the_start_is_told(tmp_path: Path) -> None:
    """What an earlier one has said is no reason of this one."""
    log = tmp_path / "echo.log"
    run(log, "echo", "of an earlier one")

    assert f"; the end of {log}:\nnow" == run(log, "echo", "now").log_tail()
    assert f"; {log} is empty" == run(log, "true").log_tail()
