"""Every process of the Procfile at work, as shops and operators meet it: over HTTP and by its commands."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from coupon_workers.claiming.key import BucketKeys
from tests.support.http_caller import claim_of
from tests.support.http_desk import template_body
from tests.support.http_reply import Reply
from tests.support.http_system import System, environment, eventually

USERS = 300
THREADS = 16
HEALED_S = 20.0
"""The sweep comes each two seconds; a busy machine takes longer."""


def test_three_hundred_users_get_one_coupon_each(system: System) -> None:
    """At once, each asking three times: all are issued exactly once, the wallets show it, and every rule holds."""
    template_id = system.desk.open(total_quantity=USERS, per_user_limit=1)
    asked = [(f"u{number}", request) for number in range(USERS) for request in ("r1", "r1", "r2")]
    random.Random(7).shuffle(asked)

    with ThreadPoolExecutor(THREADS) as threads:
        replies = list(threads.map(lambda one: system.front.claim(template_id, *one), asked))
    told = Counter((reply.status, reply.json.get("code")) for reply in replies)
    accepted = {reply.json["claim_id"] for reply in replies if reply.status == 202}
    ends = system.ends(accepted)

    assert (USERS, USERS) == (told[202, None], len(accepted))
    assert 3 * USERS == told[202, None] + told[200, None] + told[409, "LIMIT_REACHED"]
    assert {"issued"} == {end["status"] for end in ends}
    stock = system.desk.stock(template_id)
    assert (USERS, 0, 0) == tuple(stock[name] for name in ("issued", "queued", "remaining"))
    with ThreadPoolExecutor(THREADS) as threads:
        wallets = list(threads.map(lambda number: system.front.wallet(f"u{number}").ok()["items"], range(USERS)))
    assert accepted == {coupon["coupon_no"] for wallet in wallets for coupon in wallet}
    assert {1} == {len(wallet) for wallet in wallets}
    system.front.claim(template_id, "late").problem(409, "SOLD_OUT")


def test_a_claim_is_durable_soon_and_whoever_waits_is_told(system: System) -> None:
    """One question with a wait is enough, on a quiet system too."""
    template_id = system.desk.open()
    began_s = time.monotonic()

    claim_id = system.front.claimed(template_id, "ann")
    told = system.front.read_claim(claim_id, wait_s=10).ok()

    assert ("issued", claim_id) == (told["status"], told["coupon_no"])
    assert time.monotonic() - began_s < 8
    assert [claim_id] == [coupon["coupon_no"] for coupon in system.front.wallet("ann", limit=1).ok()["items"]]


def test_a_pause_holds_in_every_process_once_it_is_answered(system: System) -> None:
    """While others claim as fast as they can, nothing is accepted that was asked after the answer."""
    template_id = system.desk.open(total_quantity=100_000)
    accepted: list[tuple[float, str]] = []
    paused_s = float("inf")

    def claim(number: int) -> None:
        asked_s = time.monotonic()
        reply = system.front.claim(template_id, f"u{number}")
        if reply.status == 202:
            accepted.append((asked_s, reply.json["claim_id"]))
        else:
            reply.problem(409, "PAUSED")

    with ThreadPoolExecutor(THREADS) as threads:
        claims = [threads.submit(claim, number) for number in range(600)]
        eventually(lambda: len(accepted) >= 50)
        system.desk.act(template_id, "pause").ok()
        paused_s = time.monotonic()
        for one in claims:
            one.result()

    assert 50 <= len(accepted) < 600
    assert max(asked_s for asked_s, _ in accepted) < paused_s
    ends = Counter((end["status"], end["reason"]) for end in system.ends([claim_id for _, claim_id in accepted]))
    assert set(ends) <= {("issued", None), ("rejected", "PAUSED")}
    system.desk.act(template_id, "resume").ok()
    again = system.front.claimed(template_id, "after")
    assert "issued" == system.ends([again])[0]["status"]
    assert system.desk.stock(template_id)["issued"] == ends["issued", None] + 1


def test_an_emptied_redis_is_filled_again(system: System) -> None:
    """Until then 503, never "sold out"; then the old requests are known, the limits hold, and the sale goes on."""
    template_id = system.desk.open(total_quantity=30, per_user_limit=1)
    claims = [system.front.claimed(template_id, f"u{number}") for number in range(20)]
    assert {"issued"} == {end["status"] for end in system.ends(claims)}

    system.services.redis.flushall()
    emptied_s = time.monotonic()
    met: Counter[tuple[int, str]] = Counter()

    def answered(reply: Reply) -> bool:
        if reply.status == 503:
            met[503, reply.problem(503, "NOT_WARMED")["code"]] += 1
            return False
        return True

    eventually(lambda: answered(system.front.claim(template_id, "u0")), HEALED_S)
    healed_s = time.monotonic() - emptied_s

    assert met
    assert claims == [system.front.claim(template_id, f"u{number}").ok(200)["claim_id"] for number in range(20)]
    for number in range(20):
        system.front.claim(template_id, f"u{number}", "r2").problem(409, "LIMIT_REACHED")
    new = [system.front.claim(template_id, f"n{number}") for number in range(11)]
    assert [202] * 10 + [409] == [reply.status for reply in new]
    new[10].problem(409, "SOLD_OUT")
    assert {"issued"} == {end["status"] for end in system.ends([reply.json["claim_id"] for reply in new[:10]])}
    assert 30 == system.desk.stock(template_id)["issued"]
    assert healed_s < HEALED_S


def test_a_killed_redis_is_a_503_and_loses_nothing(system: System) -> None:
    """In the midst of claims: each is answered, asked again where it was a 503, and ends as it was told."""
    template_id = system.desk.open(total_quantity=10_000, per_user_limit=1)
    met: Counter[int] = Counter()

    def claim(number: int) -> str:
        deadline = time.monotonic() + HEALED_S
        while True:
            reply = system.front.claim(template_id, f"u{number}")
            met[reply.status] += 1
            if reply.status in (200, 202):
                return str(reply.json["claim_id"])
            assert reply.any_problem()["code"] in ("STORE_UNAVAILABLE", "NOT_WARMED") and time.monotonic() < deadline
            time.sleep(0.1)

    with ThreadPoolExecutor(THREADS) as threads:
        claims = [threads.submit(claim, number) for number in range(200)]
        eventually(lambda: met[202] >= 50)
        os.kill(system.pid("redis"), signal.SIGKILL)
        numbers = [one.result() for one in claims]

    assert set(met) <= {200, 202, 503}
    assert 200 == len(set(numbers))
    assert {"issued"} == {end["status"] for end in system.ends(numbers)}
    assert (200, 9_800) == tuple(system.desk.stock(template_id)[name] for name in ("issued", "remaining"))


def test_a_sold_out_template_opens_again_everywhere(system: System) -> None:
    """With a raised total, in all processes of the front at once."""
    template_id = system.desk.open(total_quantity=1)
    system.front.claimed(template_id, "ann")
    with ThreadPoolExecutor(THREADS) as threads:
        refused = list(threads.map(lambda number: system.front.claim(template_id, f"a{number}").status, range(50)))

    system.desk.change(template_id, total_quantity=51).ok()

    with ThreadPoolExecutor(THREADS) as threads:
        accepted = list(threads.map(lambda number: system.front.claim(template_id, f"b{number}").status, range(50)))
    assert ([409] * 50, [202] * 50) == (refused, accepted)


def raw(system: System, request: bytes) -> bytes:
    """What the front answers to these bytes, up to the end of the connection or of its head."""
    host, port = system.base_url.removeprefix("http://").split(":")
    with closing(socket.create_connection((host, int(port)), timeout=15)) as connection:
        answer = b""
        with suppress(OSError):  # the server may have ended it before it has all
            connection.sendall(request)
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
    stock = system.desk.stock(template_id)

    answers = {
        name: raw(system, request)
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
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), (name, answer[:200])
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
    assert 0 == system.services.redis.exists(BucketKeys(int(template_id)).takers)


def test_after_all_that_every_rule_holds(system: System) -> None:
    """The command finds nothing, whatever was killed, emptied and paused above."""
    system.assert_sound()


@contextmanager
def up(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """``coupon-workers up`` in a process of its own; ended by force if the test has not ended it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "coupon_workers.cli.main", "up"],
        env=environment(data_dir, COUPON_HTTP_PORT=str(free_port()), COUPON_CLAIM_RATE="0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    """One nobody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])


def ready(process: subprocess.Popen[str]) -> str:
    """The address of the front, as the one line says."""
    assert process.stdout is not None
    return process.stdout.readline().split()[1]


def test_a_stopped_system_goes_on_where_it_was(tmp_path: Path) -> None:
    """SIGTERM in the midst of claims: what was accepted is there after the next start, issued, once each."""
    with up(tmp_path) as process:
        system = System(tmp_path, ready(process))
        template_id = system.desk.open(total_quantity=10_000, per_user_limit=1)
        accepted: dict[str, str] = {}

        def claim(number: int) -> None:
            try:
                reply = system.front.claim(template_id, f"u{number}")
            except OSError:
                return  # no answer: nothing was promised
            except Exception as error:  # noqa: BLE001 - http.client's, when the front has gone
                assert "HTTP" in type(error).__mro__[1].__name__ or "Disconnected" in type(error).__name__
                return
            if reply.status == 202:
                accepted[f"u{number}"] = reply.json["claim_id"]
            else:
                reply.problem(503, "STORE_UNAVAILABLE")

        with ThreadPoolExecutor(THREADS) as threads:
            claims = [threads.submit(claim, number) for number in range(800)]
            eventually(lambda: len(accepted) >= 100)
            process.send_signal(signal.SIGTERM)
            for one in claims:
                one.result()
        process.wait(timeout=60)
    assert 0 == process.returncode
    key = system.front._headers

    with up(tmp_path) as process:
        system = System(tmp_path, ready(process))
        assert key["Authorization"]
        again = {user: system.front.claim(template_id, user).ok(200)["claim_id"] for user in accepted}
        ends = system.ends(list(accepted.values()))
        issued = system.desk.stock(template_id)["issued"]
        system.assert_sound()
        draft = system.admin.ask("POST", "/v1/templates", template_body()).ok(201)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)

    assert accepted == again
    assert {"issued"} == {end["status"] for end in ends}
    assert issued >= len(accepted)
    assert draft["status"] == "draft"
    assert 0 == process.returncode
