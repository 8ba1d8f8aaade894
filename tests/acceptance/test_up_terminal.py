"""``coupon-workers up`` in a terminal: words for people, and one line for programs."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from tests.support.http_system import free_port
from tests.support.mortal import mortal

STOP_TIMEOUT_S = 60.0


def read_all(descriptor: int, into: list[bytes]) -> None:
    """Until the other side is closed."""
    with suppress(OSError):
        while piece := os.read(descriptor, 65_536):
            into.append(piece)


def test_whoever_starts_it_by_hand_is_told_what_to_do_next(tmp_path: Path) -> None:
    """Standard error: readable logs, hints, a word at the end. Standard output: the ready line and nothing else."""
    terminal, its_end = pty.openpty()
    port = free_port()
    ours = {name: value for name, value in os.environ.items() if not name.startswith("COUPON_")}
    changed = {"COUPON_DATA_DIR": str(tmp_path), "COUPON_HTTP_PORT": str(port), "COUPON_HTTP_PROT": "1"}
    process = subprocess.Popen(
        mortal(sys.executable, "-m", "coupon_workers.cli.main", "up"),
        env={**ours, **changed},
        stdout=subprocess.PIPE,
        stderr=its_end,
        text=True,
    )
    os.close(its_end)
    pieces: list[bytes] = []
    reader = threading.Thread(target=read_all, args=(terminal, pieces))
    reader.start()

    assert process.stdout is not None
    ready = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=STOP_TIMEOUT_S)
    reader.join(STOP_TIMEOUT_S)
    os.close(terminal)
    told = b"".join(pieces).decode()

    assert (f"ready http://127.0.0.1:{port}\n", "", 0) == (ready, rest, process.returncode)
    assert f"http://127.0.0.1:{port}/docs" in told and "coupon-workers keys create" in told and "Ctrl-C" in told
    assert f"stopping… (data kept in {tmp_path})" in told
    assert "scheduler_started" in told and '{"' not in told
    assert "Python threads" not in told and "/readyz" not in told
    assert 1 == told.count("unknown setting COUPON_HTTP_PROT")
