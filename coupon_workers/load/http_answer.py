"""One HTTP/1.1 answer, read from the bytes a connection has received so far."""

from __future__ import annotations

from dataclasses import dataclass

_HEAD_LIMIT_BYTES = 64 * 1024
"""An answer's head is a few hundred bytes; what is longer is not HTTP."""

_WITHOUT_BODY = frozenset({204, 304})


class MalformedAnswer(ValueError):  # noqa: N818 - it says what was heard
    """The peer sent something that is not an HTTP/1.1 answer with a ``Content-Length``."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body, the seconds of ``Retry-After`` (None without one), and whether the peer closes the connection."""

    status: int
    body: bytes
    retry_after_s: float | None = None
    closes: bool = False


def take_answer(buffer: bytearray) -> Answer | None:
    """Remove the first whole answer from ``buffer`` and return it; None while it is not complete.

    Only answers of a known length are read (``Content-Length``, or a status without a body): it is all our server
    sends. Raises ``MalformedAnswer`` for anything else.
    """
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > _HEAD_LIMIT_BYTES:
            raise MalformedAnswer(f"no end of the head in {len(buffer)} bytes")
        return None
    head = bytes(buffer[:end]).lower()
    if not head.startswith(b"http/1.1 ") or not head[9:12].isdigit():
        raise MalformedAnswer(repr(head[:60]))
    status = int(head[9:12])
    body_from = end + 4
    body_to = body_from + _length(head, status)
    if len(buffer) < body_to:
        return None
    body = bytes(buffer[body_from:body_to])
    del buffer[:body_to]
    return Answer(status, body, _retry_after_s(head), _header(head, b"connection") == b"close")


def _header(head: bytes, name: bytes) -> bytes | None:
    """The value of a header in a head that is in lower case already."""
    at = head.find(b"\r\n" + name + b":")
    if at < 0:
        return None
    start = at + len(name) + 3
    stop = head.find(b"\r\n", start)
    return head[start : stop if stop >= 0 else len(head)].strip()


def _length(head: bytes, status: int) -> int:
    length = _header(head, b"content-length")
    if length is not None and length.isdigit():
        return int(length)
    if status in _WITHOUT_BODY:
        return 0
    raise MalformedAnswer(f"an answer {status} without a Content-Length")


def _retry_after_s(head: bytes) -> float | None:
    value = _header(head, b"retry-after")
    return float(value) if value is not None and value.isdigit() else None
