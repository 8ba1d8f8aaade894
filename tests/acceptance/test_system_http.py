"""Every process of the Procfile at work, as shops and operators meet it: over HTTP and by its commands."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException

from tests.support.http_reply import Reply
from tests.support.http_system import System, eventually

USERS = 300
THREADS = 16
HEALED_S = 20.0
"""The sweep comes each two seconds; a busy machine takes longer."""


def test_three_hundred_users_get_one_coupon_each(system: System) -> None:
    """At once, each asking three times: all are issued exactly once, the wallets show it, and every rule holds."""
    template_id = system.desk.open(total_quantity=USERS, per_user_limit=1)
    asked = [(f"crowd{number}", request) for number in range(USERS) for request in ("r1", "r1", "r2")]
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
        wallets = list(threads.map(lambda number: system.front.wallet(f"crowd{number}").ok()["items"], range(USERS)))
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

    system.redis.flushall()
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


def test_a_stopped_system_goes_on_where_it_was(system: System) -> None:
    """SIGTERM in the midst of claims: what was accepted is there after the next start, issued, once each."""
    template_id = system.desk.open(total_quantity=10_000, per_user_limit=1)
    accepted: dict[str, str] = {}

    def claim(number: int) -> None:
        with suppress(OSError, HTTPException):  # no answer: nothing was promised
            reply = system.front.claim(template_id, f"u{number}")
            if reply.status == 202:
                accepted[f"u{number}"] = reply.json["claim_id"]
            else:
                reply.problem(503, "STORE_UNAVAILABLE")

    with ThreadPoolExecutor(THREADS) as threads:
        claims = [threads.submit(claim, number) for number in range(800)]
        eventually(lambda: len(accepted) >= 100)
        system.tell_to_stop()
        for one in claims:
            one.result()
    ended = system.wait_for_end()
    system.start()
    ends = system.ends(accepted.values())

    assert 0 == ended
    assert 100 <= len(accepted) < 800
    assert {"issued"} == {end["status"] for end in ends}
    assert accepted == {user: system.front.claim(template_id, user).ok(200)["claim_id"] for user in accepted}
    assert len(accepted) <= system.desk.stock(template_id)["issued"] <= 800


def test_after_all_that_every_rule_holds(system: System) -> None:
    """The command finds nothing, whatever was killed, emptied, paused and stopped above."""
    system.assert_sound()
