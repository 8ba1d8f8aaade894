"""A lean connection for the hot commands: a socket, hiredis, and nothing between.

The ordinary client spends several times a command's own cost on each command (DESIGN 13). A connection is used by one
thread at a time; after any error it is thrown away, because what is still to come over it would answer the wrong
question.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import hiredis

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.settings import Settings

_CHUNK = 16_384


def pack(*words: str | int | bytes) -> bytes:
    """A command as the bytes that go over the wire."""
    packed: bytes = hiredis.pack_command(words)  # type: ignore[arg-type]  # its type forgets that tuples vary
    return packed


class LeanConnection:
    """A connection to ``url`` (``redis://``, ``rediss://``, ``unix://``), opened at first use and again after an error.

    ``timeout_ms`` is the longest wait for one read. The options of the address are those of the ordinary client, as
    far as they are understood here: ``db``, ``ssl_ca_certs``, ``ssl_cert_reqs``, ``ssl_certfile``, ``ssl_keyfile``.
    """

    def __init__(self, url: str, timeout_ms: int) -> None:
        self._url = url
        self._timeout_s = timeout_ms / 1000
        self._socket: socket.socket | None = None
        self._reader = hiredis.Reader()

    def ask(self, commands: Sequence[bytes]) -> list[Any]:
        """Send packed commands in one write and return their answers, in order; an error answer is a value in it.

        Raises ``StoreUnavailable`` when an answer did not come: what the server did is then unknown.
        """
        try:
            if self._socket is None:
                self._open()
            return self._exchange(commands)
        except (OSError, hiredis.ProtocolError, StoreUnavailable) as error:
            self.close()
            raise StoreUnavailable("Redis", str(error)) from error
        except BaseException:  # an interruption: the answer is still to come
            self.close()
            raise

    def close(self) -> None:
        """Drop the connection; the next question opens a new one."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _exchange(self, commands: Sequence[bytes]) -> list[Any]:
        connection, reader = self._socket, self._reader
        assert connection is not None
        connection.sendall(commands[0] if len(commands) == 1 else b"".join(commands))
        answers: list[Any] = []
        while True:
            data = connection.recv(_CHUNK)
            if not data:
                raise ConnectionResetError("the server closed the connection")
            reader.feed(data)
            while (answer := reader.gets()) is not False:
                answers.append(answer)
            if len(answers) >= len(commands):
                return answers

    def _open(self) -> None:
        parts = urlsplit(self._url)
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.scheme == "unix":
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(self._timeout_s)
            self._socket.connect(unquote(parts.path))
            database = options.get("db", "0")
        else:
            address = (parts.hostname or "localhost", parts.port or 6379)
            self._socket = socket.create_connection(address, timeout=self._timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if parts.scheme == "rediss":
                self._socket = _tls(options).wrap_socket(self._socket, server_hostname=address[0])
            database = options.get("db") or parts.path.strip("/") or "0"
        if parts.scheme != "rediss":
            _let_the_kernel_time_out(self._socket, self._timeout_s)
        self._reader = hiredis.Reader()
        hello: list[tuple[str, ...]] = []
        if parts.password:
            user = (unquote(parts.username),) if parts.username else ()
            hello.append(("AUTH", *user, unquote(parts.password)))
        if database != "0":
            hello.append(("SELECT", database))
        if hello:
            for answer in self._exchange([pack(*command) for command in hello]):
                if isinstance(answer, hiredis.ReplyError):
                    raise StoreUnavailable("Redis", str(answer))


class LeanThreads:
    """Lean connections to one server for the threads of a process, each with its own."""

    def __init__(self, url: str, timeout_ms: int) -> None:
        self._url = url
        self._timeout_ms = timeout_ms
        self._local = threading.local()

    def ask(self, commands: Sequence[bytes]) -> list[Any]:
        """As ``LeanConnection.ask``, over this thread's connection."""
        connection: LeanConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = LeanConnection(self._url, self._timeout_ms)
        return connection.ask(commands)


def lean_threads(settings: Settings) -> LeanThreads:
    """Lean ways to the stock's Redis. Make them after a fork, never before.

    Raises ``StoreUnavailable`` when no URL is set.
    """
    if settings.redis_url is None:
        raise StoreUnavailable("Redis", "COUPON_REDIS_URL is not set and no embedded server runs")
    return LeanThreads(settings.redis_url.get_secret_value(), settings.redis_timeout_ms)


def _let_the_kernel_time_out(connection: socket.socket, timeout_s: float) -> None:
    """Have the kernel end a wait that is too long: Python's own time-out asks ``poll`` before each read and write,
    two system calls more for every claim. A wait that is over raises ``BlockingIOError``."""
    seconds = int(timeout_s)
    interval = struct.pack("@ll", seconds, int((timeout_s - seconds) * 1_000_000))
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, interval)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, interval)


def _tls(options: dict[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
    if options.get("ssl_cert_reqs") == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "ssl_certfile" in options:
        context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"))
    return context
