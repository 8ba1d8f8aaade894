"""The load client against a peer that loses, delays, cuts and refuses answers."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO

import pytest

from coupon_workers.load.admin_call import AdminCall, UnexpectedAnswer
from coupon_workers.load.admin_client import AdminClient
from coupon_workers.load.claim_call import ClaimCall
from coupon_workers.load.claim_client import ClaimClient
from coupon_workers.load.history import NO_ANSWER, HeardClaim
from coupon_workers.load.http_request import Address
from coupon_workers.load.retry_policy import RetryPolicy

PATIENT = RetryPolicy(timeout_s=20.0, give_up_s=60.0, retry_after_cap_s=0.05, backoff_s=0.01)
IMPATIENT = RetryPolicy(timeout_s=0.3, give_up_s=60.0, backoff_s=0.01)
HOPELESS = RetryPolicy(timeout_s=20.0, give_up_s=1.0, backoff_s=0.01)
Behave = Callable[[socket.socket, str, int], bytes | None]
"""Given the connection, the request id, and how often it came before: the answer; None when it took care itself."""


def answer(status: int, body: object, headers: str = "") -> bytes:
    """An HTTP answer with a JSON body."""
    text = json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\n%bContent-Length: %d\r\n\r\n%b" % (status, headers.encode(), len(text), text)


def accepted(request_id: str) -> bytes:
    """A 202 whose claim id is the request's number."""
    return answer(202, {"claim_id": request_id, "status": "queued"})


class Peer:
    """A server of a thread a connection that behaves as told and notes every request it was sent."""

    def __init__(self, behave: Behave) -> None:
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address("127.0.0.1", self._listener.getsockname()[1], "secret")
        self.seen: Counter[str] = Counter()
        self.heads: list[bytes] = []
        self.most_open = 0
        self._open = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening: a socket that is only closed goes on to listen for the thread that waits at it."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self._lock:
            self._open += 1
            self.most_open = max(self.most_open, self._open)
        with connection, connection.makefile("rb") as stream:
            try:
                while head := _head(stream):
                    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                    body = json.loads(stream.read(length) or b"{}")
                    if (sent := self._answer(connection, head, str(body.get("request_id", "")))) is not None:
                        connection.sendall(sent)
            except (OSError, ValueError, IndexError):
                pass
        with self._lock:
            self._open -= 1

    def _answer(self, connection: socket.socket, head: bytes, request_id: str) -> bytes | None:
        with self._lock:
            before = self.seen[request_id]
            self.seen[request_id] += 1
            self.heads.append(head)
        return self._behave(connection, request_id, before)


def _head(stream: BinaryIO) -> bytes:
    """All lines before an empty one; nothing once the other side has closed."""
    lines: list[bytes] = []
    while (line := stream.readline()) not in (b"\r\n", b""):
        lines.append(line)
    return b"".join(lines) if line else b""


@pytest.fixture
def peer_of() -> Iterator[Callable[[Behave], Peer]]:
    """Makes peers and closes them."""
    peers: list[Peer] = []

    def make(behave: Behave) -> Peer:
        peers.append(Peer(behave))
        return peers[-1]

    yield make
    for peer in peers:
        peer.close()


def run(peer: Peer, count: int = 1, *, connections: int = 4, policy: RetryPolicy = PATIENT) -> list[HeardClaim]:
    """Send ``count`` claims; their ends."""
    with ClaimClient(peer.address, connections=connections, policy=policy) as client:
        client.run(ClaimCall("1", "ann", str(number)) for number in range(1, count + 1))
        return list(client.history)


def test_every_claim_is_sent_once_and_its_answer_kept(peer_of: Callable[[Behave], Peer]) -> None:
    """500 claims over four connections: 500 requests with the key, each with its own answer."""
    peer = peer_of(lambda _, request_id, __: accepted(request_id))

    ends = run(peer, 500)

    assert {(str(number), 202, "queued", number) for number in range(1, 501)} == {
        (end.call.request_id, end.status, end.word, end.claim_id) for end in ends
    }
    assert 500 == peer.seen.total() == len(peer.heads)
    assert 4 == peer.most_open
    assert peer.heads[0].startswith(b"POST /v1/claims HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in peer.heads[0]


def test_a_refusal_is_kept_with_the_rule_it_names(peer_of: Callable[[Behave], Peer]) -> None:
    """Whoever reads the history sees what stopped a claim."""
    refusal = b'{"code":"RISK_REJECTED","rule":"accounts_of_device"}'
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(refusal)
    peer = peer_of(lambda _, __, ___: head + refusal)

    ends = run(peer)

    assert [(403, "RISK_REJECTED accounts_of_device", 0)] == [(end.status, end.word, end.claim_id) for end in ends]


def _hang_up(connection: socket.socket) -> bytes | None:
    connection.shutdown(socket.SHUT_RDWR)
    return None


def _cut(connection: socket.socket, sent: bytes) -> bytes | None:
    connection.sendall(sent)
    return _hang_up(connection)


LOSSES: dict[str, Behave] = {
    "closed without an answer": lambda connection, _, __: _hang_up(connection),
    "closed in the middle of an answer": lambda connection, request, _: _cut(connection, accepted(request)[:-5]),
    "not HTTP": lambda _, __, ___: b"+PONG\r\n\r\n",
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_lost_answer_is_asked_again_with_the_same_request(peer_of: Callable[[Behave], Peer], name: str) -> None:
    """The outcome of the first try is unknown: the same request id is sent again, and its answer counts."""
    peer = peer_of(lambda c, request, before: LOSSES[name](c, request, before) if before == 0 else accepted(request))

    ends = run(peer, 3)

    assert {"1": 2, "2": 2, "3": 2} == peer.seen
    assert {(1, 202, 2), (2, 202, 2), (3, 202, 2)} == {(end.claim_id, end.status, end.attempts) for end in ends}


def test_an_answer_that_does_not_come_is_asked_again(peer_of: Callable[[Behave], Peer]) -> None:
    """After the time-out the connection is given up and the same request is sent on another."""
    peer = peer_of(lambda _, request, before: None if before == 0 else accepted(request))

    ends = run(peer, 3, policy=IMPATIENT)

    assert {1, 2, 3} == {end.claim_id for end in ends}
    assert all(end.attempts >= 2 for end in ends)
    assert all(end.heard_ms - end.first_sent_ms >= IMPATIENT.timeout_s * 1000 for end in ends)


def test_a_claim_that_is_never_answered_is_given_up(peer_of: Callable[[Behave], Peer]) -> None:
    """The load ends in time, and says that the outcome is unknown."""
    peer = peer_of(lambda connection, _, __: _hang_up(connection))

    [end] = run(peer, policy=HOPELESS)

    assert NO_ANSWER == end.status
    assert end.attempts > 1
    assert end.heard_ms - end.first_sent_ms < PATIENT.give_up_s * 1000


def test_a_server_that_is_away_stops_the_load(peer_of: Callable[[Behave], Peer]) -> None:
    """Claims wait for a dead server instead of being spent on it: no more are begun than connections."""
    peer = peer_of(lambda _, __, ___: None)
    peer.close()
    begun: list[int] = []

    def calls() -> Iterator[ClaimCall]:
        for number in range(1_000):
            begun.append(number)
            yield ClaimCall("1", "ann", str(number))

    with ClaimClient(peer.address, connections=4, policy=HOPELESS) as client:
        client.run(calls(), run_for_s=0.5)

    assert 4 == len(begun) == len(client.history)


def test_retry_after_is_respected_but_capped(peer_of: Callable[[Behave], Peer]) -> None:
    """An hour is asked for, the cap is waited."""
    later = answer(503, {"code": "BACKLOG_FULL"}, "Retry-After: 3600\r\n")
    peer = peer_of(lambda _, request, before: later if before < 2 else accepted(request))

    [end] = run(peer)

    assert (202, 3) == (end.status, end.attempts)
    assert 2 * PATIENT.retry_after_cap_s * 1000 <= end.heard_ms - end.first_sent_ms < 3_600_000


def test_a_refusal_is_final(peer_of: Callable[[Behave], Peer]) -> None:
    """A 409 and a 429 are heard and not asked again; a 503 without Retry-After neither."""
    status = {"1": 409, "2": 429, "3": 503}
    peer = peer_of(
        lambda _, request, __: answer(status[request], {"code": "NO"}, "Retry-After: 1\r\n"[: (request < "3") * 99])
    )

    ends = run(peer, 3)

    assert {(409, "NO"), (429, "NO"), (503, "NO")} == {(end.status, end.word) for end in ends}
    assert 3 == peer.seen.total()


def test_a_connection_closed_between_answers_is_opened_again(peer_of: Callable[[Behave], Peer]) -> None:
    """``Connection: close`` costs a new connection and no retry."""
    peer = peer_of(
        lambda _, request, __: answer(202, {"claim_id": request, "status": "queued"}, "Connection: close\r\n")
    )

    ends = run(peer, 20, connections=2)

    assert {1} == {end.attempts for end in ends}
    assert 20 == len(ends)


def test_a_rate_is_kept(peer_of: Callable[[Behave], Peer]) -> None:
    """100 claims at 200 a second take half a second, or longer where the machine is busy."""
    peer = peer_of(lambda _, request, __: accepted(request))
    with ClaimClient(peer.address, connections=4, policy=PATIENT) as client:
        client.run((ClaimCall("1", "ann", str(number)) for number in range(1, 101)), rate=200)
        sent_ms = [end.first_sent_ms for end in client.history]

    assert max(sent_ms) - min(sent_ms) >= 490


def test_an_operators_call_is_sent_again_with_its_key(peer_of: Callable[[Behave], Peer]) -> None:
    """A lost answer and a write still running are asked again; an error of the contract is raised with its body."""
    running = answer(409, {"code": "IN_PROGRESS"}, "Retry-After: 1\r\n")
    steps: list[bytes | None] = [None, running, answer(201, {"template_id": "5"}), answer(422, {"code": "INVALID"})]
    peer = peer_of(lambda connection, _, before: steps[before] or _hang_up(connection))
    call = AdminCall("POST", "/v1/templates", {"name": "x"}, "key-1")

    with AdminClient(peer.address, connections=1, policy=PATIENT) as client:
        made = client.ask(call)
        with pytest.raises(UnexpectedAnswer, match=r"422 .*INVALID"):
            client.ask(call)

    assert {"template_id": "5"} == made
    assert all(b"Idempotency-Key: key-1\r\n" in head for head in peer.heads)
