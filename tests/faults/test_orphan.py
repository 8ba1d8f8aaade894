"""A worker does not outlive its master."""

from __future__ import annotations

import subprocess
import sys

import psutil

MASTER = """
import multiprocessing, sys, time
from coupon_workers.runtime.orphan import end_with_parent

def work(ready):
    end_with_parent()
    ready.set()
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    worker = context.Process(target=work, args=(ready,))
    worker.start()
    ready.wait()
    print(worker.pid, flush=True)
    time.sleep(600)
"""
LATE = """
import multiprocessing, os, sys, time
from coupon_workers.runtime.orphan import end_with_parent

def work(master):
    print(os.getpid(), flush=True)
    while os.getppid() == master:
        time.sleep(0.01)
    end_with_parent()
    print("lived on", flush=True)

if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=work, args=(os.getpid(),))
    worker.start()
    time.sleep(600)
"""


def start(script: str) -> tuple[subprocess.Popen[str], psutil.Process]:
    """The master, and its worker."""
    master = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert master.stdout is not None
    return master, psutil.Process(int(master.stdout.readline()))


def test_a_killed_master_takes_its_worker_along() -> None:
    """kill -9 leaves it no time to tell its workers."""
    master, worker = start(MASTER)

    master.kill()
    master.communicate()

    assert psutil.wait_procs([worker], timeout=10)[1] == []


def test_a_worker_whose_master_is_gone_already_ends_at_once() -> None:
    """The master may die while the worker is still starting."""
    master, worker = start(LATE)

    master.kill()
    output, _ = master.communicate()

    assert psutil.wait_procs([worker], timeout=10)[1] == []
    assert output == ""
