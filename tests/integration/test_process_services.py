"""A worker process has one set of services, however many of its threads begin at once."""

from __future__ import annotations

import os
import subprocess
import sys

from coupon_workers.runtime.settings import Settings

BEGIN = """
import threading
from actors import process_services

THREADS = 16
barrier, made = threading.Barrier(THREADS), []

def begin():
    barrier.wait()
    made.append(process_services.services())

threads = [threading.Thread(target=begin) for _ in range(THREADS)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(made), len({id(services) for services in made}))
"""


def test_threads_that_begin_at_once_share_their_services(settings: Settings) -> None:
    """A set of its own for each would lease a worker number and open connections for nobody."""
    urls = {
        f"COUPON_{name.upper()}": getattr(settings, name).get_secret_value()
        for name in ("database_url", "redis_url", "broker_url")
    }

    done = subprocess.run(
        [sys.executable, "-c", BEGIN], env={**os.environ, **urls}, capture_output=True, text=True, check=False
    )

    assert ["16", "1"] == done.stdout.split(), done.stderr
