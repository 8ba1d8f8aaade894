"""Ends connections whose request has stopped in the midst of its body: each would hold a thread for ever.

Granian reads a body in the thread that will answer it, and knows no time-out for it (``web/server.py``). Which
connection a thread waits for cannot be learnt from it. So when a thread has waited too long, every connection to our
port that has been silent for as long is ended: the stalled one, and idle ones, whose clients open another.

A body that goes on coming, however slowly, is not ended: against clients that do this on purpose, from many
connections, put a proxy that buffers requests before the front.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

from coupon_workers.runtime.structured_log import get_logger

SILENT_S = 10.0
POLL_S = 2.0

waiting_since_s: dict[int, float] = {}
"""Thread → since when (monotonic, seconds) it waits for the body it reads."""

_LAST_DATA_RECEIVED = struct.Struct("=52xI")
"""``tcpi_last_data_recv`` of Linux's ``struct tcp_info``: milliseconds since the last byte arrived."""

_DESCRIPTORS = Path("/proc/self/fd")

log = get_logger("web.stalled_body")


def end_stalled_bodies(port: int) -> None:
    """Watch for the rest of this process's life, in a thread. Linux only; elsewhere nothing is ended."""
    if sys.platform == "linux":
        Thread(target=_watch, args=(port,), name="stalled-bodies", daemon=True).start()


def _watch(port: int) -> None:
    while True:
        time.sleep(POLL_S)
        now_s = time.monotonic()
        if any(now_s - since_s > SILENT_S for since_s in list(waiting_since_s.values())):
            log.warning("bodies stalled", connections_ended=end_silent_connections(port, SILENT_S))


def end_silent_connections(port: int, silent_s: float) -> int:
    """End this process's accepted connections on ``port`` that have been silent for ``silent_s``; returns how many."""
    ended = 0
    for path in list(_DESCRIPTORS.iterdir()):
        # A descriptor may be closed, and its number given to another, at any time: only sockets of our port are ended.
        with suppress(OSError):
            descriptor = int(path.name)
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                with socket.socket(fileno=os.dup(descriptor)) as connection:
                    ended += _end_if_silent(connection, port, silent_s)
    return ended


def _end_if_silent(connection: socket.socket, port: int, silent_s: float) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.getsockname()[1] != port:
        return False
    connection.getpeername()  # raises for the listening socket
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA_RECEIVED.size)
    if _LAST_DATA_RECEIVED.unpack(info)[0] < silent_s * 1000:
        return False
    connection.shutdown(socket.SHUT_RDWR)
    return True
