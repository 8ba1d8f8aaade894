"""Refusals of a claim: each with its status, its code and what else it tells, and nothing taken (API.md, Claims)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.claiming.gate import ClaimGate, Decision
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.services import Services
from tests.support.http_desk import from_now
from tests.support.http_reply import Reply
from tests.support.http_shop import Shop
from tests.support.template import insert_template
from web.app import create_app


def refused(shop: Shop, template_id: str, user: str = "ann", request: str = "new", **fields: Any) -> Reply:
    """A claim that must be refused and must change nothing."""
    before = shop.holdings()

    reply = shop.front.claim(template_id, user, request, **fields)

    assert before == shop.holdings()
    assert reply.status >= 400
    return reply


def test_an_unknown_template_is_not_found(shop: Shop) -> None:
    """Neither one that never was nor one of a number that no template can have."""
    for template_id in ("1", "9223372036854775807"):
        refused(shop, template_id).problem(404, "TEMPLATE_NOT_FOUND")


def test_before_the_start_the_refusal_tells_when_it_is(shop: Shop) -> None:
    """In UTC; for a draft too, which has no keys at the gate."""
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    told = start.isoformat().replace("+00:00", "Z")
    local = start.astimezone().isoformat()
    for template_id in (shop.desk.open(claim_start=local), shop.desk.draft(claim_start=local)):
        problem = refused(shop, template_id).problem(409, "NOT_STARTED")
        assert told == problem["starts_at"]


def test_a_draft_whose_window_has_begun_tells_no_start(shop: Shop) -> None:
    """It starts when it is published: nobody is sent to a time in the past."""
    problem = refused(shop, shop.desk.draft(claim_start=from_now(hours=-1))).problem(409, "NOT_STARTED")

    assert "starts_at" not in problem


def test_after_the_end_nothing_can_be_claimed(shop: Shop) -> None:
    """By the window, by taking it offline and by archiving; what was accepted before is still told."""
    ended = shop.desk.open(claim_start=from_now(days=-2), claim_end=from_now(hours=-1))
    offline, archived = shop.desk.open(), shop.desk.open()
    claim_id = shop.front.claimed(offline, "ann")
    shop.desk.act(offline, "offline").ok()
    shop.desk.admin.ask("DELETE", f"/v1/templates/{archived}").ok()

    for template_id in (ended, offline, archived):
        refused(shop, template_id).problem(409, "ENDED")
    assert claim_id == shop.front.claim(offline, "ann").ok(200)["claim_id"]
    shop.settle(offline)
    assert "OFFLINE" == shop.front.claim(offline, "ann").ok(200)["reason"]


def test_a_pause_holds_once_it_is_answered(shop: Shop) -> None:
    """And ends once the resumption is; claims that were queued at the pause are rejected, later ones issued."""
    template_id = shop.desk.open(total_quantity=200)
    queued = [shop.front.claimed(template_id, f"u{number}") for number in range(100)]

    shop.desk.act(template_id, "pause").ok()
    refused(shop, template_id).problem(409, "PAUSED")
    shop.desk.act(template_id, "resume").ok()
    later = shop.front.claimed(template_id, "late")
    shop.settle(template_id)

    ends = [shop.front.read_claim(claim_id).ok() for claim_id in [*queued, later]]
    assert ["PAUSED"] * 100 + [None] == [end["reason"] for end in ends]
    assert (1, 0, 199) == tuple(shop.desk.stock(template_id)[name] for name in ("issued", "queued", "remaining"))
    shop.assert_sound()


def test_sold_out_until_there_are_more(shop: Shop) -> None:
    """Raising the total opens the sale again, at once, and only for as many as were added."""
    template_id = shop.desk.open(total_quantity=2)
    for user in ("ann", "bob"):
        shop.front.claimed(template_id, user)
    refused(shop, template_id, "eve").problem(409, "SOLD_OUT")
    shop.settle(template_id)
    refused(shop, template_id, "eve").problem(409, "SOLD_OUT")

    shop.desk.change(template_id, total_quantity=3).ok()

    shop.front.claimed(template_id, "eve")
    refused(shop, template_id, "max").problem(409, "SOLD_OUT")
    shop.settle(template_id)
    shop.assert_sound()


def test_a_user_gets_as_many_as_allowed(shop: Shop) -> None:
    """Five requests of one user where one is allowed: one coupon, nine left."""
    template_id = shop.desk.open(per_user_limit=1)
    claim_id = shop.front.claimed(template_id, "ann", "r1")

    for request in ("r2", "r3", "r4", "r5"):
        refused(shop, template_id, "ann", request).problem(409, "LIMIT_REACHED")

    assert claim_id == shop.front.claim(template_id, "ann", "r1").ok(200)["claim_id"]
    assert 9 == shop.desk.stock(template_id)["remaining"]
    shop.front.claimed(template_id, "bob", "r1")


def test_a_channel_that_is_not_on_the_list_gets_nothing(shop: Shop) -> None:
    """Whoever names none may claim; a template without a list is for every channel; a list is no channel."""
    listed, for_all = shop.desk.open(channels_claim=["app", "h5", "web"]), shop.desk.open(channels_claim=[])

    for channel in ("pos", "App", "ap", "pp", "app,h5", ",", "app,", " app"):
        refused(shop, listed, channel=channel).problem(403, "NOT_ELIGIBLE")

    for number, named in enumerate(["app", "h5", "web", None]):
        shop.front.claimed(listed, f"u{number}", channel=named)
    shop.front.claimed(listed, "nobody")
    shop.front.claimed(for_all, "ann", channel="anything, really")


def test_a_user_who_asks_too_often_is_told_how_long_to_wait(services: Services) -> None:
    """A second at most; others and other templates are not in his way, and his accepted request is still answered."""
    shop = Shop(services, claim_rate=2)
    template_id = shop.desk.open()
    claims = [shop.front.claimed(template_id, "ann", request) for request in ("r1", "r2")]

    reply = refused(shop, template_id, "ann", "r3")

    problem = reply.problem(429, "RATE_LIMITED")
    assert "1" == reply.headers["retry-after"]
    assert 1 <= problem["retry_after_ms"] <= 1_000
    assert claims[0] == shop.front.claim(template_id, "ann", "r1").ok(200)["claim_id"]
    shop.front.claimed(template_id, "bob", "r3")
    shop.front.claimed(shop.desk.open(), "ann", "r3")


def test_a_full_backlog_is_told_apart_from_sold_out(services: Services) -> None:
    """503, to ask again: once claims are settled there is room."""
    shop = Shop(services, claim_rate=0, backlog_limit=2)
    template_id = shop.desk.open()
    for user in ("ann", "bob"):
        shop.front.claimed(template_id, user)

    refused(shop, template_id, "eve").problem(503, "BACKLOG_FULL")

    assert "queued" == shop.front.claim(template_id, "ann").ok(200)["status"]
    shop.settle(template_id)
    shop.front.claimed(template_id, "eve", "new")


def test_a_template_that_is_not_in_redis_is_not_sold_out(shop: Shop) -> None:
    """Published in the database and not loaded: 503, to ask again, and then it can be claimed."""
    template_id = str(insert_template(shop.services.engine))

    refused(shop, template_id).problem(503, "NOT_WARMED")
    shop.desk.act(template_id, "preheat").ok()

    shop.front.claimed(template_id, "ann")


def test_a_changed_end_works_at_once(shop: Shop) -> None:
    """Earlier, and later again."""
    template_id = shop.desk.open()
    shop.front.claimed(template_id, "ann")

    shop.desk.change(template_id, claim_end=from_now(seconds=-1)).ok()
    refused(shop, template_id).problem(409, "ENDED")
    shop.desk.change(template_id, claim_end=from_now(hours=1)).ok()

    shop.front.claimed(template_id, "bob")


class GateAt(ClaimGate):
    """A gate whose clock is given: in production it is Redis's own."""

    now_ms = 0

    def claim(self, request: ClaimRequest, now_ms: int = 0) -> Decision:
        """Decide one claim at the instant the test has set."""
        return super().claim(request, now_ms or self.now_ms)


@pytest.fixture
def gate(shop: Shop) -> GateAt:
    """The gate of the shop's front, with a clock of its own."""
    shop.app = create_app(shop.services)
    front = ClaimFront(shop.services)
    gate = GateAt(shop.services.settings, front._next_claim_id)
    front._gate = gate
    shop.app.extensions["coupon_workers_claim_front"] = front
    shop.front = shop.caller("storefront")
    return gate


def test_a_day_is_a_day_of_the_templates_place(shop: Shop, gate: GateAt) -> None:
    """In New York the hour that is told twice belongs to one day, and the next begins at midnight there."""
    template_id = shop.desk.open(
        timezone="America/New_York",
        per_user_limit=3,
        per_user_daily_limit=1,
        claim_start="2026-10-01T00:00:00-04:00",
        claim_end="2027-01-01T00:00:00-05:00",
        validity={"mode": "fixed", "from": "2026-10-01T00:00:00Z", "to": "2027-06-01T00:00:00Z"},
    )
    days = [
        ("2026-10-31T23:59:59-04:00", None),
        ("2026-11-01T00:00:01-04:00", None),
        ("2026-11-01T01:30:00-04:00", "DAILY_LIMIT_REACHED"),
        ("2026-11-01T01:30:00-05:00", "DAILY_LIMIT_REACHED"),
        ("2026-11-01T23:59:59-05:00", "DAILY_LIMIT_REACHED"),
        ("2026-11-02T00:00:00-05:00", None),
        ("2026-11-03T12:00:00-05:00", "LIMIT_REACHED"),
    ]

    for number, (instant, code) in enumerate(days):
        gate.now_ms = to_ms(datetime.fromisoformat(instant))
        reply = shop.front.claim(template_id, "ann", f"r{number}")
        if code is None:
            reply.ok(202)
        else:
            reply.problem(409, code)
        shop.settle(template_id)

    assert 3 == shop.desk.stock(template_id)["issued"]
    shop.assert_sound()


def test_the_earlier_refusal_is_the_one_that_is_told(shop: Shop) -> None:
    """Paused and sold out and had one already: paused. Had one and sold out: had one."""
    template_id = shop.desk.open(total_quantity=1, per_user_limit=1, channels_claim=["app"])
    shop.front.claimed(template_id, "ann")

    refused(shop, template_id, "ann", channel="pos").problem(403, "NOT_ELIGIBLE")
    refused(shop, template_id, "ann").problem(409, "LIMIT_REACHED")
    refused(shop, template_id, "bob").problem(409, "SOLD_OUT")
    shop.desk.act(template_id, "pause").ok()
    refused(shop, template_id, "ann", channel="pos").problem(409, "PAUSED")
