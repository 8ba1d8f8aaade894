"""When the client sends a call again, under which identity, how long it waits, and when it gives up."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.client import ClientError, CouponClient, NoAnswer, Problem, RetryPolicy, TryLater

Reply = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]

ACCEPTED = httpx.Response(202, json={"claim_id": "7", "status": "queued"})
POLICY = RetryPolicy(timeout_s=10, deadline_s=30, backoff_s=0.5, backoff_cap_s=4)


class Server:
    """Answers as it was told, the last answer for ever; its ``now`` moves when the client sleeps."""

    def __init__(self, *replies: Reply, takes_s: float = 0, draw: float = 1) -> None:
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []
        self.now = 0.0
        self._replies = replies
        self._takes_s = takes_s
        http = httpx.Client(base_url="http://shop", transport=httpx.MockTransport(self._answer))
        self.client = CouponClient(
            "http://shop", "k", http=http, retry=POLICY, clock=lambda: self.now, sleep=self._sleep, draw=lambda: draw
        )

    def _sleep(self, wait_s: float) -> None:
        self.waits.append(wait_s)
        self.now += wait_s

    def _answer(self, request: httpx.Request) -> httpx.Response:
        reply = self._replies[min(len(self.requests), len(self._replies) - 1)]
        self.requests.append(request)
        self.now += self._takes_s
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)  # type: ignore[union-attr]


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    """A problem as the server answers it."""
    head = {"Content-Type": "application/problem+json"} | {name.replace("_", "-"): v for name, v in headers.items()}
    body = {"title": "", "status": status, "code": code, "detail": "", "errors": []}
    return httpx.Response(status, headers=head, content=json.dumps(body))


LOST = [
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("late"),
    httpx.ReadTimeout("late"),
    httpx.WriteError("cut"),
    httpx.RemoteProtocolError("cut"),
    problem(429, "RATE_LIMITED"),
    httpx.Response(502, content="<html>"),
    problem(503, "STORE_UNAVAILABLE"),
    problem(409, "IN_PROGRESS"),
]


@pytest.mark.parametrize("loss", LOST, ids=str)
def test_a_lost_call_is_sent_again_as_it_was(loss: Reply) -> None:
    """A write under the key that was made before its first attempt, a claim under its own number."""
    keyed, numbered = Server(loss, loss, httpx.Response(200, json={})), Server(loss, loss, ACCEPTED)

    keyed.client.templates.publish("1")
    claimed = numbered.client.claims.claim("1", "ann", "form-1")

    assert "7" == claimed["claim_id"]
    assert 3 == len(keyed.requests) == len(numbered.requests)
    assert 1 == len({request.headers["Idempotency-Key"] for request in keyed.requests})
    assert {"form-1"} == {json.loads(request.content)["request_id"] for request in numbered.requests}


@pytest.mark.parametrize(
    "refusal",
    [
        problem(500, "INTERNAL_ERROR"),
        problem(409, "SOLD_OUT"),
        problem(422, "VALIDATION_FAILED"),
        problem(401, "INVALID_KEY"),
        httpx.LocalProtocolError("no such header"),
    ],
    ids=str,
)
def test_what_would_come_again_is_not_sent_again(refusal: Reply) -> None:
    """A refusal is an answer; a fault is for people to look at."""
    server = Server(refusal)

    with pytest.raises(ClientError):
        server.client.claims.claim("1", "ann", "form-1")

    assert 1 == len(server.requests)


@pytest.mark.parametrize("loss", LOST, ids=str)
def test_a_call_without_an_identity_is_sent_once(loss: Reply) -> None:
    """The codes of a batch are given out once: after a lost answer a person looks first."""
    server = Server(loss)

    with pytest.raises(ClientError) as error:
        server.client.codes.fetch("1")

    assert (1, None) == (len(server.requests), error.value.identity)


def test_the_wait_doubles_up_to_its_cap_and_ends_at_the_deadline() -> None:
    """At the longest draw; no attempt begins after the deadline, and the identity is told for later."""
    server = Server(httpx.ReadTimeout("late"))

    with pytest.raises(NoAnswer) as error:
        server.client.templates.publish("1")

    assert [0.5, 1.0, 2.0, 4.0] == server.waits[:4]
    assert {4.0} == set(server.waits[3:])
    assert 26 < sum(server.waits) < 30
    assert server.requests[0].headers["Idempotency-Key"] == error.value.identity
    assert isinstance(error.value.__cause__, httpx.ReadTimeout)


def test_the_server_s_wish_is_kept_to() -> None:
    """``Retry-After`` is the least wait; one that lies beyond the deadline is the end."""
    patient = Server(problem(503, "NOT_WARMED", Retry_After="3"), ACCEPTED, draw=0.5)
    locked_out = Server(problem(429, "RATE_LIMITED", Retry_After="900"))

    patient.client.claims.claim("1", "ann", "form-1")
    with pytest.raises(TryLater) as error:
        locked_out.client.codes.exchange("K7WX", "ann", "form-1")

    assert [3.25] == patient.waits
    assert ([], 900.0, 1) == (locked_out.waits, error.value.retry_after_s, len(locked_out.requests))


def test_an_attempt_has_what_is_left_of_the_time() -> None:
    """And a claim that the server is to wait with has that on top."""
    server = Server(httpx.ReadTimeout("late"), takes_s=12, draw=0)
    waiting = Server(httpx.Response(200, json={}))

    with pytest.raises(NoAnswer):
        server.client.templates.publish("1")
    waiting.client.claims.read("7", wait_s=10)

    assert [10, 10, 6] == [request.extensions["timeout"]["read"] for request in server.requests]
    assert [20] == [request.extensions["timeout"]["read"] for request in waiting.requests]


@given(attempts=st.integers(1, 10_000), draw=st.floats(0, 1), asked=st.none() | st.floats(0, 1_000))
def test_a_wait_is_never_shorter_than_asked_nor_longer_than_its_cap(
    attempts: int, draw: float, asked: float | None
) -> None:
    """For any number of attempts."""
    wait_s = POLICY.wait_s(attempts, draw, asked)

    assert (asked or 0) <= wait_s <= (asked or 0) + POLICY.backoff_cap_s


def test_an_answer_that_is_none_of_ours_has_no_code() -> None:
    """A gateway's page, or JSON that is not what it says."""
    broken = httpx.Response(400, headers={"Content-Type": "application/problem+json"}, content="{")

    for answer in (httpx.Response(404, content="<html>"), broken):
        with pytest.raises(Problem) as error:
            Server(answer).client.templates.read("1")
        assert ("", answer.status_code) == (error.value.code, error.value.status)


def test_nothing_of_the_servers_is_imported() -> None:
    """Nor anything else of this package."""
    script = (
        "import sys, coupon_workers.client\n"
        "tops = {'flask', 'sqlalchemy', 'redis', 'psycopg2', 'dramatiq', 'pydantic', 'web'}\n"
        "ours = {m for m in sys.modules if m.startswith('coupon_workers.')}\n"
        "ours -= {m for m in ours if m.startswith('coupon_workers.client')}\n"
        "print(sorted(ours | tops & sys.modules.keys()))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()


@pytest.mark.parametrize(
    "errors", [{"name": ["too long"]}, ["too long"], "too long", [{"message": "too long"}], 5, None]
)
def test_a_gateways_own_problem_is_a_problem_whatever_its_errors_look_like(errors: object) -> None:
    """RFC 9457 says nothing of ``errors``; other frameworks have a mapping there."""
    body = {"title": "Bad Request", "status": 400, "errors": errors}
    server = Server(httpx.Response(400, headers={"Content-Type": "application/problem+json"}, content=json.dumps(body)))

    with pytest.raises(Problem) as met:
        server.client.claims.read("7")

    assert (400, "", []) == (met.value.status, met.value.code, met.value.errors)
