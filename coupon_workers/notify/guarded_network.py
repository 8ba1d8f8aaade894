"""The network as a webhook's message may use it: checked at the address that is connected to, and not for long.

A name is looked up once, here, and the very address that was checked is connected to: what the name meant when the
webhook was made says nothing of what it means now (DNS rebinding). TLS checks the certificate against the name all the
same.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

from httpcore import ConnectError, NetworkBackend, NetworkStream, ReadTimeout, SyncBackend, WriteTimeout

from coupon_workers.notify.public_address import is_public


class AddressRefused(Exception):  # noqa: N818 - it says what happened
    """The name leads to addresses that are not public."""


class Deadline:
    """An instant for all that is done until ``start`` is called again: a server that answers a byte at a time holds
    nobody up."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self.start()

    def start(self) -> None:
        """The time begins now."""
        self._ends_s = monotonic() + self._limit_s

    def left_s(self, timeout_s: float | None, over: Callable[[str], Exception]) -> float:
        """What remains of ``timeout_s``. Raises ``over`` when nothing does."""
        left_s = self._ends_s - monotonic()
        if left_s <= 0:
            raise over(f"no answer within {self._limit_s:g} s")
        return left_s if timeout_s is None else min(left_s, timeout_s)


class GuardedBackend(NetworkBackend):
    """Connects to public addresses only, unless ``allow_private``, within ``deadline``."""

    def __init__(self, deadline: Deadline, *, allow_private: bool) -> None:
        self._deadline = deadline
        self._allow_private = allow_private
        self._sockets = SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> NetworkStream:
        """The first address that lets us in. Raises ``AddressRefused`` when there is none that may be tried."""
        failure: Exception = ConnectError(f"{host} has no address")
        for address in self._addresses(host, port):
            try:
                left_s = self._deadline.left_s(timeout, ConnectError)
                stream = self._sockets.connect_tcp(address, port, left_s, local_address, socket_options)
            except Exception as error:  # noqa: BLE001 - the next address may do; the last failure is told
                failure = error
            else:
                return _TimedStream(stream, self._deadline)
        raise failure

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"{host} is not known: {error}") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        allowed = [address for address in addresses if self._allow_private or is_public(address)]
        if addresses and not allowed:
            raise AddressRefused(f"{host} leads to an address that is not public")
        return allowed


class _TimedStream(NetworkStream):
    def __init__(self, stream: NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left_s(timeout, ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left_s(timeout, WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        left_s = self._deadline.left_s(timeout, ConnectError)
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, left_s), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
