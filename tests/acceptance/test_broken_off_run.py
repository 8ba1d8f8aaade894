"""A run of the tests that is broken off leaves nothing running."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

RUN = """
import sys, time
from pathlib import Path
from tests.support.http_system import System

system = System(Path(sys.argv[1]))
system.start()
print("ready", flush=True)
time.sleep(600)
"""


def test_an_installation_ends_with_the_run_that_started_it(tmp_path: Path) -> None:
    """Also when the run was killed and closed nothing: all of its processes and servers."""
    root = Path(__file__).parents[2]
    run = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=root)
    assert run.stdout is not None and "ready\n" == run.stdout.readline()
    started = psutil.Process(run.pid).children(recursive=True)

    run.kill()
    run.communicate()

    assert len(started) >= 6
    assert [] == psutil.wait_procs(started, timeout=60)[1]
