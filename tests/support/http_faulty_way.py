"""The way to a front, which loses requests before the front has them, or answers after it has acted."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from urllib.parse import urlsplit

_CHUNK = 1_048_576


class Loss(Enum):
    """What happens to one request."""

    OF_THE_REQUEST = "the connection is cut, and the front never hears of it"
    OF_THE_ANSWER = "the front acts, and the connection is cut in place of its answer"
    OF_HALF_THE_ANSWER = "the front acts, and the connection is cut in the midst of its answer"


class FaultyWay:
    """Listens on a port of 127.0.0.1 and passes on to the front at ``base_url``, one request a connection. Each
    request meets the next loss planned, or none."""

    def __init__(self, base_url: str) -> None:
        address = urlsplit(base_url)
        self._front = (str(address.hostname), int(address.port or 80))
        self._losses: queue.SimpleQueue[Loss] = queue.SimpleQueue()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def plan(self, *losses: Loss) -> None:
        """The next requests meet these, one each."""
        for loss in losses:
            self._losses.put(loss)

    def close(self) -> None:
        """Let nobody through any more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, suppress(OSError):
            request = near.recv(_CHUNK)
            while request and not _is_whole(request):
                request += near.recv(_CHUNK)
            if not request:
                return
            self.requests += 1
            try:
                loss = self._losses.get_nowait()
            except queue.Empty:
                loss = None
            if loss is Loss.OF_THE_REQUEST:
                return
            answer = self._exchange(request)
            if loss is Loss.OF_HALF_THE_ANSWER:
                answer = answer[: len(answer) - 10]
            if loss is not Loss.OF_THE_ANSWER:
                near.sendall(answer)

    def _exchange(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        with socket.create_connection(self._front, timeout=30) as far:
            far.sendall(b"\r\n".join([*lines, b"Connection: close"]) + b"\r\n\r\n" + body)
            answer = b""
            while data := far.recv(_CHUNK):
                answer += data
        return answer


def _is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(end) and len(body) >= (int(lengths[0].split(b":")[1]) if lengths else 0)


@contextmanager
def faulty_way(base_url: str) -> Iterator[FaultyWay]:
    """A way for as long as the block runs."""
    way = FaultyWay(base_url)
    try:
        yield way
    finally:
        way.close()
