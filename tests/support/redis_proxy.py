"""A proxy before a Redis that loses, holds or delays what a test tells it to."""

from __future__ import annotations

import queue
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from coupon_workers.runtime.settings import Settings


class Fault(Enum):
    """What happens to one question and its answer."""

    LOSE_ANSWER = "carried out, and the connection closed in place of the answer"
    LOSE_QUESTION = "the connection closed in place of carrying it out"
    HOLD_ANSWER = "carried out at once, answered when the proxy is released"
    HOLD_QUESTION = "carried out when the proxy is released"
    NONE = "carried out and answered, as without a plan"


class RedisProxy:
    """Listens on a port of 127.0.0.1. Each question of any connection takes the next fault planned, or none."""

    def __init__(self, redis_url: str, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._target = unquote(urlsplit(redis_url).path)
        self._faults: queue.SimpleQueue[Fault] = queue.SimpleQueue()
        self._released = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self.questions = 0

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def url(self) -> str:
        """The way through the proxy, to the first database."""
        return f"redis://{self.address}/0"

    def plan(self, *faults: Fault) -> None:
        """The next questions meet these, one each."""
        for fault in faults:
            self._faults.put(fault)

    def release(self) -> None:
        """Let go of everything held, and hold nothing any more."""
        self._released.set()

    def close(self) -> None:
        """End every connection, and wait until what was under way has been carried out."""
        self.release()
        for open_socket in self._sockets:
            with suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
            open_socket.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        """Question by question: our callers never send the second before they have the first one's answer."""
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            server.connect(self._target)
            while question := client.recv(1_048_576):
                self.questions += 1
                try:
                    fault = self._faults.get_nowait()
                except queue.Empty:
                    fault = None
                if fault is Fault.LOSE_QUESTION:
                    return
                if fault is Fault.HOLD_QUESTION:
                    self._released.wait(30)
                server.sendall(question)
                answer = server.recv(1_048_576)
                if fault is Fault.LOSE_ANSWER:
                    return
                if fault is Fault.HOLD_ANSWER:
                    self._released.wait(30)
                client.sendall(answer)


@contextmanager
def proxied(settings: Settings, **changed: int) -> Iterator[tuple[RedisProxy, Settings]]:
    """A proxy before the stock's Redis, and settings that lead through it, with ``changed`` values."""
    assert settings.redis_url is not None
    proxy = RedisProxy(settings.redis_url.get_secret_value())
    try:
        yield proxy, settings.model_copy(update={"redis_url": SecretStr(proxy.url), **changed})
    finally:
        proxy.close()
