"""The load on a web server: one process of its own, one thread, many keep-alive connections, each asking anew as soon
as it has its answer.

    python -m bench.generator < load.json      reads a LoadSpec, prints a LoadResult

It takes from the same cores as what it measures, so it does as little as it can, and exactly the same for us and for
the peer: every request is made as bytes before the clock starts; an answer is counted when the bytes its
``Content-Length`` names are there, because a server may send the head and the body apart.
"""

from __future__ import annotations

import gc
import json
import selectors
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from bench.asked import HOST, Chain, LoadSpec, chains

PATIENCE_S = 30.0
"""A server that is silent for so long is broken, not slow."""

_RECEIVE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class LoadResult:
    """``answers`` by status; ``elapsed_s`` from the first question to the last answer; ``generator_us``: CPU time of
    this process for each answer."""

    answers: dict[str, int]
    elapsed_s: float
    answer_p50_ms: float
    answer_p99_ms: float
    generator_us: float


def answer_length(buffer: bytes) -> int:
    """Bytes of the answer that ``buffer`` begins with; 0 while its head is not whole.

    Raises ``ValueError`` for an answer without a ``Content-Length``.
    """
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return 0
    head = buffer[:end].lower()
    at = head.index(b"\r\ncontent-length:") + 17
    stop = head.find(b"\r\n", at)
    return end + 4 + int(head[at:] if stop < 0 else head[at:stop])


class _Connection:
    __slots__ = ("_asked_s", "_buffer", "_seen", "rest", "socket")

    def __init__(self, port: int, seen: _Seen) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._seen = seen
        self._buffer = b""
        self._asked_s = 0.0
        self.rest: Chain = ()

    def begin(self, chain: Chain) -> None:
        """Ask the first of a chain; the others wait for its answer."""
        self.rest = chain[1:]
        self.ask(chain[0])

    def go_on(self) -> bool:
        """Ask the next of the chain; False when there is none."""
        if not self.rest:
            return False
        payload, self.rest = self.rest[0], self.rest[1:]
        self.ask(payload)
        return True

    def ask(self, payload: bytes) -> None:
        self._asked_s = time.perf_counter()
        self.socket.sendall(payload)

    def hear(self) -> bool:
        """Take what has come; whether the answer is whole."""
        received = self.socket.recv(_RECEIVE_BYTES)
        if not received:
            raise ConnectionResetError("the server closed the connection")
        buffer = self._buffer + received if self._buffer else received
        length = answer_length(buffer)
        if length == 0 or len(buffer) < length:
            self._buffer = buffer
            return False
        if len(buffer) > length:
            raise ValueError("more came than was asked for")
        self._buffer = b""
        self._seen.statuses.append(buffer[9:12])
        self._seen.latencies_s.append(time.perf_counter() - self._asked_s)
        return True


class _Seen:
    __slots__ = ("latencies_s", "statuses")

    def __init__(self) -> None:
        self.latencies_s: list[float] = []
        self.statuses: list[bytes] = []


def drive(spec: LoadSpec) -> LoadResult:
    """Run the load. Raises ``OSError`` or ``ValueError`` when the server does not answer as it should."""
    ready = list(chains(spec))
    seen = _Seen()
    selector = selectors.DefaultSelector()
    connections = [_Connection(spec.port, seen) for _ in range(min(spec.connections, len(ready)))]
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    gc.disable()  # nothing here makes cycles, and a pause would be counted as the server's
    cpu_s, began_s = time.process_time(), time.perf_counter()
    _ask_until(selector, connections, iter(ready), began_s + spec.seconds)
    elapsed_s = time.perf_counter() - began_s
    cpu_s = time.process_time() - cpu_s
    for connection in connections:
        connection.socket.close()
    return _result(seen, elapsed_s, cpu_s)


def _ask_until(
    selector: selectors.BaseSelector, connections: list[_Connection], ready: Iterator[Chain], deadline_s: float
) -> None:
    for connection in connections:
        connection.begin(next(ready))
    waiting = len(connections)
    while waiting:
        events = selector.select(PATIENCE_S)
        if not events:
            raise TimeoutError(f"no answer in {PATIENCE_S:g} s")
        for key, _ in events:
            if not key.data.hear() or key.data.go_on():
                continue
            chain = next(ready, None) if time.perf_counter() < deadline_s else None
            if chain is None:
                waiting -= 1
            else:
                key.data.begin(chain)


def _result(seen: _Seen, elapsed_s: float, cpu_s: float) -> LoadResult:
    ascending = sorted(seen.latencies_s)
    count = len(ascending)
    return LoadResult(
        answers={status.decode(): answers for status, answers in Counter(seen.statuses).items()},
        elapsed_s=elapsed_s,
        answer_p50_ms=ascending[(count - 1) // 2] * 1e3,
        answer_p99_ms=ascending[-(-count * 99 // 100) - 1] * 1e3,
        generator_us=cpu_s * 1e6 / count,
    )


if __name__ == "__main__":
    print(json.dumps(asdict(drive(LoadSpec(**json.load(sys.stdin))))))
