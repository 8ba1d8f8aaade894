"""Reading HTTP answers from bytes."""

from __future__ import annotations

import pytest

from coupon_workers.load.http_answer import Answer, MalformedAnswer, take_answer

WHOLE = b'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 13\r\nRETRY-AFTER: 2\r\n\r\n{"code":"XX"}'


def test_an_answer_is_read_whatever_the_case_of_its_headers() -> None:
    """Status, body and Retry-After come out, and the buffer is empty."""
    buffer = bytearray(WHOLE)

    answer = take_answer(buffer)

    assert Answer(503, b'{"code":"XX"}', 2.0, closes=False) == answer
    assert not buffer


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_a_part_of_an_answer_is_kept(length: int) -> None:
    """However the bytes are cut, nothing is answered early and nothing is lost."""
    buffer = bytearray(WHOLE[:length])

    early = take_answer(buffer)
    buffer += WHOLE[length:]

    assert early is None
    assert Answer(503, b'{"code":"XX"}', 2.0, closes=False) == take_answer(buffer)


def test_what_follows_an_answer_stays_in_the_buffer() -> None:
    """Two answers in one reading are two answers."""
    buffer = bytearray(WHOLE + b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")

    first, second = take_answer(buffer), take_answer(buffer)

    assert first is not None
    assert Answer(204, b"", None, closes=True) == second


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"x" * 70_000,
    ],
)
def test_what_is_no_answer_is_refused(sent: bytes) -> None:
    """Another protocol, an unknown length and an endless head are named, not guessed at."""
    with pytest.raises(MalformedAnswer):
        take_answer(bytearray(sent))
