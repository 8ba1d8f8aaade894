"""A Redis whose answers get lost: carried out, and the connection closed in place of the answer (FAULTS 8)."""

from __future__ import annotations

import random
import selectors
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis

_CHUNK = 1_048_576


class LossyRedis:
    """Stands at ``path``, where a Redis listened until now, before that Redis, and loses a ``share`` of its answers."""

    def __init__(self, path: Path, share: float, seed: int) -> None:
        self._path = path
        self._real = path.with_name(f"{path.name}.real")
        self._share = share
        self._draw = random.Random(seed)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self.seen: Counter[str] = Counter()

    def open(self) -> None:
        """Take the place; every connection that exists is closed, so that all come anew."""
        self._path.rename(self._real)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen(512)
        self._begin(self._accept)
        self._hang_up_all()

    def close(self) -> None:
        """Give the place back."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink()
        self._real.rename(self._path)
        for one in (one for pair in self._pairs for one in pair):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes its thread, which closes it
        for thread in self._threads:
            thread.join(5)

    def _hang_up_all(self) -> None:
        with redis.Redis(unix_socket_path=str(self._real)) as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._real))
                self._pairs.append((client, server))
                self._begin(self._serve, client, server)

    def _begin(self, work: object, *arguments: object) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what comes, from either side, until one hangs up or an answer is lost."""
        with suppress(OSError), selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select():
                    source, sink = (client, server) if key.fileobj is client else (server, client)
                    data = source.recv(_CHUNK)
                    if not data or (source is server and self._loses()):
                        raise OSError("hung up")
                    sink.sendall(data)
        _hang_up(client, server)

    def _loses(self) -> bool:
        lost = self._draw.random() < self._share
        self.seen["lost" if lost else "passed on"] += 1
        return lost


def _hang_up(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@contextmanager
def lossy(path: Path, *, share: float, seed: int) -> Iterator[LossyRedis]:
    """A Redis at ``path`` that loses a ``share`` of its answers for as long as the block runs."""
    proxy = LossyRedis(path, share, seed)
    proxy.open()
    try:
        yield proxy
    finally:
        proxy.close()
