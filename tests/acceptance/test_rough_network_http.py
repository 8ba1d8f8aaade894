"""What comes over a real network: what is hardly HTTP, and what is no claim, does no harm to a real front."""

from __future__ import annotations

import socket
from contextlib import closing, suppress
from typing import Any

from coupon_workers.claiming.key import BucketKeys
from tests.support.http_caller import claim_of
from tests.support.http_system import System


def raw(system: System, request: bytes, *, hang_up: bool = False) -> bytes:
    """What the front answers to these bytes, up to the end of the connection; ``hang_up``: nothing more will come."""
    host, port = system.base_url.removeprefix("http://").split(":")
    with closing(socket.create_connection((host, int(port)), timeout=15)) as connection:
        answer = b""
        with suppress(OSError):  # the server may have ended it before it has all
            connection.sendall(request)
            if hang_up:
                connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while data := connection.recv(65_536):
                answer += data
    return answer


def test_what_is_hardly_http_is_refused(system: System) -> None:
    """By the server itself or by us: 4xx or the end of the connection, and the front goes on."""
    template_id = system.desk.open()
    key = system.front._headers["Authorization"].encode()
    head = b"POST /v1/claims HTTP/1.1\r\nHost: x\r\nAuthorization: " + key + b"\r\nContent-Type: application/json\r\n"
    head += b"Connection: close\r\n"
    stock = system.desk.stock(template_id)

    answers = {
        name: raw(system, request, hang_up=name == "a body cut short")
        for name, request in {
            "no HTTP": b"\x00\xff\x16\x03\x01 nonsense\r\n\r\n",
            "an id of a mebibyte": b"GET /v1/claims/" + b"9" * 2**20 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            "a head of a mebibyte": head + b"X-Much: " + b"x" * 2**20 + b"\r\n\r\n",
            "a length that is none": head + b"Content-Length: ten\r\n\r\n{}",
            "a negative length": head + b"Content-Length: -1\r\n\r\n{}",
            "a length beyond all": head + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n{}",
            "two lengths": head + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            "a length and chunks": head + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "a chunk that is none": head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
            "a body cut short": head + b"Content-Length: 100\r\n\r\n{",
            "too much in chunks": head
            + b"Transfer-Encoding: chunked\r\n\r\n"
            + (b"10000\r\n" + b" " * 65_536 + b"\r\n") * 17
            + b"0\r\n\r\n",
        }.items()
    }

    for name, answer in answers.items():
        assert answer.startswith(b"HTTP/1.1 4"), (name, answer[:200])
        assert b"Traceback" not in answer, name
    assert b"413" in answers["too much in chunks"].split(b"\r\n")[0]
    assert stock == system.desk.stock(template_id)
    system.front.claimed(template_id, "ann")


def test_bad_claims_are_refused_by_the_real_front(system: System) -> None:
    """The same problems as without a network, in any number, and nothing is taken."""
    template_id = system.desk.open()
    good = claim_of(template_id, "ann")
    bad: list[tuple[Any, int, str]] = [
        (good | {"user_id": "a\x00b"}, 422, "VALIDATION_FAILED"),
        (good | {"user_id": "\ud800"}, 422, "VALIDATION_FAILED"),
        (good | {"template_id": 2**63}, 422, "VALIDATION_FAILED"),
        (good | {"colour": "red"}, 422, "VALIDATION_FAILED"),
        ([good], 422, "VALIDATION_FAILED"),
        (b"", 400, "MALFORMED_JSON"),
        (b"\xff", 400, "MALFORMED_JSON"),
        (b"[" * 200_000, 400, "MALFORMED_JSON"),
        (b'{"template_id": ' + b"1" * 1_000_000 + b"}", 400, "MALFORMED_JSON"),
        (b" " * (2**20 + 1), 413, "BODY_TOO_LARGE"),
    ]

    for body, status, code in bad * 3:
        system.front.ask("POST", "/v1/claims", body).problem(status, code)

    stock = system.desk.stock(template_id)
    assert (0, 0, 10) == tuple(stock[name] for name in ("issued", "queued", "remaining"))
    assert 0 == system.redis.exists(BucketKeys(int(template_id)).takers)
