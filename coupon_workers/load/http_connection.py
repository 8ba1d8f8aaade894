"""One keep-alive connection that carries one exchange at a time and never blocks."""

from __future__ import annotations

import selectors
import socket
from dataclasses import dataclass

from coupon_workers.load.http_answer import Answer, take_answer

_READ = selectors.EVENT_READ
_BOTH = selectors.EVENT_READ | selectors.EVENT_WRITE
_RECEIVE_BYTES = 64 * 1024


@dataclass(slots=True, eq=False)
class Exchange:
    """A request on its way: its bytes, whose it is, the answers upon which it is sent again, and its times.

    ``retry_on``: statuses that mean "later" when they carry ``Retry-After``. Times are seconds of ``time.monotonic``;
    ``sent_s`` is that of the last try.
    """

    payload: bytes
    tag: object
    retry_on: frozenset[int] = frozenset({503})
    attempts: int = 0
    first_sent_s: float = 0.0
    sent_s: float = 0.0
    heard_s: float = 0.0


class HttpConnection:
    """Opened when first needed, and again after it was lost."""

    __slots__ = ("_address", "_buffer", "_selector", "_socket", "_unsent", "exchange")

    def __init__(self, selector: selectors.BaseSelector, address: tuple[str, int]) -> None:
        self._selector = selector
        self._address = address
        self._socket: socket.socket | None = None
        self._buffer = bytearray()
        self._unsent = b""
        self.exchange: Exchange | None = None

    def send(self, exchange: Exchange) -> None:
        """Begin ``exchange``. Raises ``OSError`` when the connection is lost."""
        self.exchange = exchange
        self._unsent = exchange.payload
        if self._socket is None:
            self._open()
            return
        self._flush()
        if self._unsent:
            self._selector.modify(self._socket, _BOTH, self)

    def advance(self) -> Answer | None:
        """Do what the socket is ready for; the answer when it is whole.

        Raises ``OSError`` when the connection is lost and ``MalformedAnswer`` when the peer does not speak HTTP.
        """
        if self._socket is None:
            return None
        if self._unsent:
            self._flush()
            if not self._unsent:
                self._selector.modify(self._socket, _READ, self)
        try:
            received = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return None
        if not received:
            raise ConnectionResetError("closed by the peer")
        self._buffer += received
        answer = take_answer(self._buffer)
        if answer is not None and answer.closes:
            self.close()
        return answer

    def close(self) -> None:
        """Forget the socket and what was received on it; the exchange stays for the caller to take."""
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None
        self._buffer.clear()
        self._unsent = b""

    def _open(self) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(self._socket, _BOTH, self)
        self._socket.connect_ex(self._address)  # a refusal shows when the socket is first used

    def _flush(self) -> None:
        assert self._socket is not None
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return
