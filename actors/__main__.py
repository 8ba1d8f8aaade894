"""``python -m actors``: Dramatiq's own command line, with our options."""

from __future__ import annotations

import os
import sys

from coupon_workers.runtime.settings import settings

SHUTDOWN_MS = 10_000
"""Longer than a drain's turn, shorter than a supervisor's grace."""

BOOT_MS = 2_000
"""How long the master waits for a worker to say that it runs, deaf to signals and to the worker's death meanwhile: as
shipped thirty seconds, after which a worker killed while it starts is missed."""


def main() -> int:
    """Run the worker processes of the settings until SIGTERM."""
    # Read by Dramatiq when it is imported: how long an idle consumer sleeps, and how soon it comes back.
    os.environ.setdefault("dramatiq_worker_timeout", "100")
    os.environ.setdefault("dramatiq_restart_delay", "500")
    from dramatiq.cli import main as dramatiq_main
    from dramatiq.cli import make_argument_parser

    config = settings()
    arguments = [
        "actors",
        "--processes",
        str(config.worker_processes),
        "--threads",
        str(config.worker_threads),
        "--worker-shutdown-timeout",
        str(SHUTDOWN_MS),
        "--worker-fork-timeout",
        str(BOOT_MS),
        "--skip-logging",
    ]
    return int(dramatiq_main(make_argument_parser().parse_args(arguments)) or 0)


if __name__ == "__main__":
    sys.exit(main())
