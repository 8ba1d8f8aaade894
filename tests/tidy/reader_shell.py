"""The shell of a documents' reader: the project's commands on its PATH, and a curl that every machine has."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from coupon_workers.embedded.running_system import RunningSystem

WRITTEN_ADDRESS = "http://127.0.0.1:8000"
"""Where the documents find the front: the default, which may be taken here."""

TIMEOUT_S = 120


def run_in_one_shell(parts: Sequence[str], installation: RunningSystem, folder: Path) -> list[str]:
    """Run the parts one after the other; what each has printed.

    Raises ``AssertionError`` with the part that failed and what was said on standard error.
    """
    outputs = [folder / str(number) for number in range(len(parts))]
    lines = [f"{{\n{part}\n}} > '{output}'" for part, output in zip(parts, outputs, strict=True)]
    script = "\n".join(["set -eu", *lines]).replace(WRITTEN_ADDRESS, installation.base_url)
    done = subprocess.run(
        ["sh", "-c", script],
        env=_environment(installation, folder),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    reached = sum(output.exists() for output in outputs) - 1
    assert 0 == done.returncode, f"{parts[reached]}\n{done.stderr}"
    return [output.read_text(encoding="utf-8") for output in outputs]


def _environment(installation: RunningSystem, folder: Path) -> dict[str, str]:
    """Ours, without the settings of whoever runs the tests."""
    programs = folder / "programs"
    programs.mkdir()
    curl = programs / "curl"
    stand_in = Path(__file__).with_name("curl_stand_in.py")
    curl.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{stand_in}" "$@"\n', encoding="utf-8")
    curl.chmod(0o755)
    path = (str(programs), str(Path(sys.executable).parent), sysconfig.get_path("scripts"), os.environ["PATH"])
    others = {name: value for name, value in os.environ.items() if not name.startswith("COUPON_")}
    return {**others, "PATH": os.pathsep.join(path), "COUPON_DATA_DIR": str(installation.servers.data_dir)}
