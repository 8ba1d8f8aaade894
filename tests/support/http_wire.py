"""The line to a server, which a test can cut and mend: cut, nobody gets through and every connection is lost."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import SecretStr

from coupon_workers.runtime.settings import Settings

_CHUNK = 65_536


class Wire:
    """Listens on a port of 127.0.0.1 and passes everything on to the Unix socket ``target``."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._listen()

    def cut(self) -> None:
        """From now on connections are refused, and those that are open have ended."""
        with self._lock:
            ends, self._open = [self._listener, *self._open], []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def mend(self) -> None:
        """Let through whoever comes."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._listen()

    def _listen(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                with self._lock:
                    self._open += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=_carry, args=ends, daemon=True).start()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class Wires:
    """A wire to each of the three servers of ``settings``, and ``settings`` that lead over them."""

    def __init__(self, settings: Settings) -> None:
        assert settings.database_url and settings.redis_url and settings.broker_url
        folder = parse_qs(urlsplit(settings.database_url.get_secret_value()).query)["host"][0]
        self.database = Wire(f"{folder}/.s.PGSQL.5432")
        self.redis = Wire(unquote(urlsplit(settings.redis_url.get_secret_value()).path))
        self.broker = Wire(unquote(urlsplit(settings.broker_url.get_secret_value()).path))
        self.settings = settings.model_copy(
            update={
                "database_url": SecretStr(f"postgresql://postgres@127.0.0.1:{self.database.port}/coupon"),
                "redis_url": SecretStr(f"redis://127.0.0.1:{self.redis.port}/0"),
                "broker_url": SecretStr(f"redis://127.0.0.1:{self.broker.port}/0"),
            }
        )

    def close(self) -> None:
        """Cut all of them for good."""
        for wire in (self.database, self.redis, self.broker):
            wire.cut()
