"""A server is away: what needs it is a 503 that says when to ask again, and everything else goes on."""

from __future__ import annotations

import json
import time

from tests.support.http_caller import Caller, claim_of
from tests.support.http_desk import template_body
from tests.support.http_reply import Reply
from tests.support.http_shop import Shop
from tests.support.http_wire import Wires

QUICKLY_S = 5.0
"""No answer takes longer while a server is away, also on a busy machine."""


def away(reply: Reply, store: str) -> None:
    """The answer says that ``store`` is away, and nothing of where it is."""
    problem = reply.problem(503, "STORE_UNAVAILABLE")
    assert problem["detail"].startswith(store)
    assert "127.0.0.1" not in reply.body.decode()


def readiness(caller: Caller) -> tuple[int, str]:
    """What a balancer is told."""
    reply = caller.ask("GET", "/readyz")
    return reply.status, json.loads(reply.body)["status"]


def test_without_redis_nothing_is_claimed_and_wallets_are_read(far_shop: Shop, wires: Wires) -> None:
    """Never a 500; the same request is accepted when it is back."""
    desk, front = far_shop.desk, far_shop.front
    template_id = desk.open()
    claim_id = front.claimed(template_id, "ann")
    far_shop.settle(template_id)
    began_s = time.monotonic()

    wires.redis.cut()
    for user in ("ann", "bob"):
        away(front.claim(template_id, user), "Redis")
    away(front.claim_many([claim_of(template_id, "bob"), claim_of(template_id, "eve")]), "Redis")
    assert "issued" == front.read_claim(claim_id, wait_s=5).ok()["status"]
    away(front.read_claim("7", wait_s=5), "Redis")
    assert [1] == [offer["claimed"] for offer in front.center("ann").ok()["items"]]
    away(desk.act(template_id, "pause"), "Redis")
    assert [claim_id] == [coupon["coupon_no"] for coupon in front.wallet("ann").ok()["items"]]
    assert claim_id == front.coupon("ann", claim_id).ok()["coupon_no"]
    assert (False, 9) == tuple(desk.stock(template_id)[name] for name in ("warmed", "remaining"))
    assert (503, "down") == readiness(front)
    front.ask("GET", "/livez").ok()
    assert time.monotonic() - began_s < 3 * QUICKLY_S

    wires.redis.mend()
    desk.act(template_id, "pause").ok()
    front.claim(template_id, "bob").problem(409, "PAUSED")
    desk.act(template_id, "resume").ok()
    front.claimed(template_id, "bob")
    assert claim_id == front.claim(template_id, "ann").ok(200)["claim_id"]
    far_shop.settle(template_id)
    far_shop.assert_sound()


def test_without_postgresql_claims_go_on(far_shop: Shop, wires: Wires) -> None:
    """Accepted, repeated, limited and read while they are queued; what lies in the database has to wait."""
    desk, front = far_shop.desk, far_shop.front
    template_id = desk.open(per_user_limit=1)
    settled = front.claimed(template_id, "ann")
    far_shop.settle(template_id)
    kept = front.wallet("ann").ok()
    began_s = time.monotonic()

    wires.database.cut()
    claim_id = front.claimed(template_id, "bob")
    assert claim_id == front.claim(template_id, "bob").ok(200)["claim_id"]
    assert settled == front.claim(template_id, "ann").ok(200)["claim_id"]
    front.claim(template_id, "bob", "r2").problem(409, "LIMIT_REACHED")
    statuses = [result["status"] for result in front.claim_many([claim_of(template_id, "eve")] * 2).ok()["results"]]
    assert [202, 200] == statuses
    assert "queued" == front.read_claim(claim_id).ok()["status"]
    front.claim("1", "ann").problem(503, "NOT_WARMED")
    assert kept == front.wallet("ann").ok()
    for reply in (
        front.wallet("bob"),
        front.wallet("ann", limit=10),
        front.coupon("ann", settled),
        front.read_claim(settled),
        front.center("ann"),
        desk.act(template_id, "pause"),
        desk.change(template_id, total_quantity=20),
        desk.admin.ask("POST", "/v1/templates", template_body()),
        desk.admin.ask("POST", "/v1/templates", template_body(), Idempotency_Key="k1"),
    ):
        away(reply, "PostgreSQL")
    assert (200, "degraded") == readiness(front)
    assert time.monotonic() - began_s < 3 * QUICKLY_S

    wires.database.mend()
    assert 2 == far_shop.settle(template_id)
    assert "issued" == front.read_claim(claim_id).ok()["status"]
    desk.admin.ask("POST", "/v1/templates", template_body(), Idempotency_Key="k1").ok(201)
    far_shop.assert_sound()


def test_a_key_nobody_has_seen_needs_postgresql(far_shop: Shop, wires: Wires) -> None:
    """503, not 401: it may be a good one."""
    template_id = far_shop.desk.open()
    newcomer, nobody = far_shop.caller("storefront"), far_shop.caller()

    wires.database.cut()
    away(newcomer.claim(template_id, "ann"), "PostgreSQL")
    nobody.claim(template_id, "ann").problem(401, "UNAUTHENTICATED")
    wires.database.mend()

    newcomer.claimed(template_id, "ann")


def test_without_the_broker_claims_are_accepted(far_shop: Shop, wires: Wires) -> None:
    """The doorbell is lost, and the claim is not: the answer is 202 and comes soon."""
    template_id = far_shop.desk.open()
    began_s = time.monotonic()

    wires.broker.cut()
    claims = [far_shop.front.claimed(template_id, user) for user in ("ann", "bob", "eve")]
    assert (200, "degraded") == readiness(far_shop.front)
    assert time.monotonic() - began_s < 2 * QUICKLY_S

    assert 3 == far_shop.settle(template_id)
    assert {"issued"} == {far_shop.front.read_claim(claim_id).ok()["status"] for claim_id in claims}
    far_shop.assert_sound()


def test_a_queue_is_looked_at_without_the_broker(far_shop: Shop, wires: Wires) -> None:
    """503 for those who ask for it; claims that wait have nothing to do with it."""
    ops = far_shop.caller("ops")
    ops.ask("GET", "/v1/queues").ok()

    wires.broker.cut()
    away(ops.ask("GET", "/v1/queues"), "broker")
    away(ops.ask("GET", "/v1/dead-letters"), "broker")
    assert 200 == ops.ask("GET", "/metrics").status

    wires.broker.mend()
    ops.ask("GET", "/v1/queues").ok()


def test_all_away_is_still_told_in_order(far_shop: Shop, wires: Wires) -> None:
    """A known key, all servers gone: 503 for everything but the sign of life."""
    template_id = far_shop.desk.open()
    far_shop.front.claimed(template_id, "ann")

    wires.close()

    for reply in (
        far_shop.front.claim(template_id, "bob"),
        far_shop.front.claim_many([claim_of(template_id, "bob")]),
        far_shop.front.wallet("ann"),
        far_shop.front.center("ann"),
        far_shop.desk.act(template_id, "pause"),
    ):
        reply.problem(503, "STORE_UNAVAILABLE")
    far_shop.front.ask("GET", "/livez").ok()
