"""The load on a claim view: one process of its own, one thread, many keep-alive connections, each asking anew as soon
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

HOST = "127.0.0.1"
PATIENCE_S = 30.0
"""A server that is silent for so long is broken, not slow."""

_RECEIVE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """``claims_each`` claims a request: 1 for the single view. ``mark`` keeps the users and requests of loads apart.
    Asking ends after ``seconds``, or ``most`` requests.
    """

    port: int
    path: str
    key: str
    template_id: int
    mark: str
    connections: int
    seconds: float
    most: int
    claims_each: int = 1


@dataclass(frozen=True, slots=True)
class LoadResult:
    """``answers`` by status; ``elapsed_s`` from the first question to the last answer; ``generator_us``: CPU time of
    this process for each answer."""

    answers: dict[str, int]
    elapsed_s: float
    answer_p50_ms: float
    answer_p99_ms: float
    generator_us: float


def payloads(spec: LoadSpec) -> Iterator[bytes]:
    """Every request as it goes over the wire."""
    head = (
        f"POST {spec.path} HTTP/1.1\r\nHost: {HOST}:{spec.port}\r\nAuthorization: Bearer {spec.key}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    ).encode()
    for number in range(spec.most):
        body = _body(spec, number)
        yield b"%b%d\r\n\r\n%b" % (head, len(body), body)


def _body(spec: LoadSpec, number: int) -> bytes:
    if spec.claims_each == 1:
        return _claim(spec, number).encode()
    first = number * spec.claims_each
    claims = ",".join(_claim(spec, first + offset) for offset in range(spec.claims_each))
    return f'{{"claims":[{claims}]}}'.encode()


def _claim(spec: LoadSpec, number: int) -> str:
    return (
        f'{{"template_id":"{spec.template_id}","user_id":"u-{spec.mark}-{number:07}",'
        f'"request_id":"order-form-{spec.mark}-{number:07}","channel":"app"}}'
    )


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
    __slots__ = ("_asked_s", "_buffer", "_seen", "socket")

    def __init__(self, port: int, seen: _Seen) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._seen = seen
        self._buffer = b""
        self._asked_s = 0.0

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
    ready = list(payloads(spec))
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
    selector: selectors.BaseSelector, connections: list[_Connection], ready: Iterator[bytes], deadline_s: float
) -> None:
    for connection in connections:
        connection.ask(next(ready))
    waiting = len(connections)
    while waiting:
        events = selector.select(PATIENCE_S)
        if not events:
            raise TimeoutError(f"no answer in {PATIENCE_S:g} s")
        for key, _ in events:
            if not key.data.hear():
                continue
            payload = next(ready, None) if time.perf_counter() < deadline_s else None
            if payload is None:
                waiting -= 1
            else:
                key.data.ask(payload)


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
