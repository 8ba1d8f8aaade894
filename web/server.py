"""The web server: Granian, serving the application over WSGI from several processes.

What its source says (2.8), and what we make of it:

* The master binds nothing on Linux but shares the port: each worker listens for itself. A second master on the same
  port would get half of the requests, so ``serve`` first makes sure that the port is free.
* A worker is forked from the master and loads the application afterwards: connections belong to one process.
* A thread is taken as soon as the head of a request is there; reading the body then holds the thread for as long as
  the client takes. ``SPARE_THREADS`` beyond the working ones wait for slow bodies, and ``web/stalled_body.py`` ends
  those that have stopped.
* ``kill -9`` of a worker is noticed and the worker replaced; twice in 5.5 seconds, and the master gives up, and
  whoever started it starts it again.
* On SIGTERM the workers finish what they have begun, for ``STOP_S`` at most.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server import Server

from coupon_workers.embedded.listen_address import free_port
from coupon_workers.runtime.settings import Settings

MULTIPROC_DIR = "PROMETHEUS_MULTIPROC_DIR"
"""The variable by which prometheus-client learns the folder through which processes share their counts."""

BACKLOG = 2_048
"""Connections the kernel holds for a worker that is busy: a peak's first second."""

MOST_CONNECTIONS = 4_096
"""Open connections of a worker, idle ones included; more wait in the backlog."""

SPARE_THREADS = 56
"""Threads of a worker beyond those that work: a slow body holds one and costs nothing else (measured: the claims a
second are the same with 8 and with 64)."""

STOP_S = 5
"""How long a worker may take to finish on SIGTERM; ``coupon-workers up`` allows its front as much."""

HEAD_TIMEOUT_MS = 10_000
MOST_HEAD_BYTES = 64 * 1024
"""A request's head: a slow one is cut off, and a longer one refused with 431."""


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises ``EmbeddedServerError`` when the port is taken, ``SystemExit`` 1 when workers die as soon as they start.
    """
    free_port(settings.http_host, settings.http_port)
    _make_metrics_folder(settings)
    server = Server(
        "web.wsgi:application",
        address=settings.http_host,
        port=settings.http_port,
        interface=Interfaces.WSGI,
        workers=settings.web_workers,
        blocking_threads=settings.web_threads + SPARE_THREADS,
        backlog=BACKLOG,
        backpressure=MOST_CONNECTIONS,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            header_read_timeout=HEAD_TIMEOUT_MS, keep_alive=True, max_buffer_size=MOST_HEAD_BYTES
        ),
        websockets=False,
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_S,
        log_level=_own_level(settings),
        log_dictconfig=_LOGS,
    )
    server.serve(target_loader=_load, wrap_loader=False)


def _own_level(settings: Settings) -> LogLevels:
    """Granian's own news, that it listens or that a worker is there, comes before anything can be answered: it is told
    at DEBUG only. ``coupon-workers up`` tells when all is ready."""
    level = LogLevels(settings.log_level.lower())
    return LogLevels.warning if level is LogLevels.info else level


class _News(logging.Filter):
    """All but the warning of many threads: they are meant, see ``SPARE_THREADS``."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("Configuration allows spawning up to")


_LOGS: dict[str, Any] = {
    "handlers": {},
    "formatters": {},
    "filters": {"news": {"()": _News}},
    "loggers": {"_granian": {"handlers": [], "filters": ["news"]}},
}
"""Granian's lines go the way of all others: to the root logger, which ``configure_logs`` has set up."""


def _load() -> Callable[..., Any]:
    """The application, loaded in the worker. By import, so that a folder called ``web`` elsewhere cannot take its
    place, as it could when Granian looks for a target by its name."""
    # A worker has its master's handlers, which note an order for nobody to read, until Granian gives it its own when it
    # is loaded: told to end meanwhile it would begin to serve, and be killed in the midst of it. Now it ends at once.
    for order in (signal.SIGTERM, signal.SIGINT):
        signal.signal(order, signal.SIG_DFL)
    from web.wsgi import application

    return application()


def _make_metrics_folder(settings: Settings) -> None:
    """An empty folder for this master's workers: counts of an earlier run would be added to theirs."""
    folder = Path(os.environ.get(MULTIPROC_DIR) or settings.data_dir / "metrics" / f"web-{settings.http_port}")
    if folder.is_dir():
        for file in folder.glob("*.db"):
            file.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[MULTIPROC_DIR] = str(folder.resolve())
