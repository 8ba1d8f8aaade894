"""The checker must bite: each guard is broken on purpose, and exactly what it guarded is reported (FAULTS.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
import redis
from sqlalchemy import text

from coupon_workers.checking.report import check_all
from coupon_workers.checking.verdict_table import fact_table
from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate import ClaimGate
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from coupon_workers.templates.local_day import local_day_number

TEMPLATE_ID = 7_001
TOTAL = 5
KEYS = BucketKeys(TEMPLATE_ID)
BRIEFLY_S = 0.3

INSERT_TEMPLATE = text("""
    INSERT INTO coupon_template (template_id, template_no, name, type, currency, amount_minor, threshold_minor,
        total_quantity, per_user_limit, per_user_daily_limit, claim_start, claim_end, validity, timezone, scope,
        stacking, refund, transferable, restock_on_revoke, notify, channels_claim, status)
    VALUES (:template_id, 'TPL-7001', 'checked', 'amount_off', 'CNY', 2000, 10000, :total, 2, 1,
        now() - interval '1 hour', now() + interval '1 day',
        '{"mode": "relative", "days": 7, "start_after_days": 0, "until_end_of_day": false}',
        'Asia/Shanghai', '{}', '{}', '{}', false, false, true, '[]', 'active')
""")
INSERT_COUPON = """
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
        source, claimed_at)
    VALUES (:user, :coupon_id, 7001, :seq, :request, 1, now(), now() + interval '1 day', 'claim',
        now() - interval '1 day' * :days_ago)
"""
INSERT_FLOW = """
    INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator)
    VALUES (:user, :coupon_id, 1, 'issue', 'unused', 'claim')
"""


@dataclass
class Scene:
    """Users ann, bob and cat have a coupon each of five; dan's claim is queued."""

    services: Services
    gate: ClaimGate

    def sql(self, statement: str, **arguments: object) -> Scene:
        """Run one statement and commit it; the scene, for what comes next."""
        with self.services.engine.begin() as connection:
            connection.execute(text(statement), arguments)
        return self

    @property
    def redis(self) -> redis.Redis:
        """The gate's server."""
        return self.services.redis

    def claim(self, user: str, request: str) -> int:
        """Claim at the gate; the claim id."""
        return self.gate.claim(ClaimRequest(TEMPLATE_ID, user, request)).claim_id

    def claim_id(self, user: str) -> int:
        """The claim that the gate remembers of a user's request ``r-<user>``."""
        stored = self.redis.hget(KEYS.requests, f"{user} r-{user}")
        assert isinstance(stored, bytes)
        return int(stored.split()[0])

    def issue_by_hand(self, user: str, *, coupon_id: int, seq: int, request: str, days_ago: int = 0) -> Scene:
        """A coupon more, booked everywhere as if the gate had let it pass; the scene, for what comes next."""
        values: dict[str, object] = {"user": user, "coupon_id": coupon_id}
        self.sql(INSERT_COUPON, **values, seq=seq, request=request, days_ago=days_ago)
        self.sql(INSERT_FLOW, **values)
        self.sql("UPDATE coupon_template SET issued_quantity = issued_quantity + 1")
        self.redis.decr(KEYS.stock)
        taker = self.redis.hget(KEYS.takers, user) or b"0 0"
        assert isinstance(taker, bytes)
        self.redis.hset(KEYS.takers, user, f"{int(taker.split()[0]) + 1} {seq}")
        self.redis.hset(KEYS.requests, f"{user} {request}", f"{coupon_id} issued")
        day = local_day_number(utc_now() - timedelta(days=days_ago), "Asia/Shanghai")
        self.redis.hincrby(f"{KEYS.day_prefix}{day}", user, 1)
        return self


@pytest.fixture
def scene(services: Services) -> Scene:
    """A warm template with three settled claims and a queued one."""
    with services.engine.begin() as connection:
        connection.execute(INSERT_TEMPLATE, {"template_id": TEMPLATE_ID, "total": TOTAL})
    preheat_template(services, TEMPLATE_ID)
    made = Scene(services, ClaimGate(services.settings, services.next_id))
    for user in ("ann", "bob", "cat"):
        made.claim(user, f"r-{user}")
    drain(services, TEMPLATE_ID, 0)
    made.claim("dan", "r-dan")
    return made


def broken(services: Services) -> set[str]:
    """The names of the invariants that do not hold."""
    return {breach.invariant for breach in check_all(services, patience_s=BRIEFLY_S).breaches}


def test_a_sound_system_has_no_breach(scene: Scene) -> None:
    """Settled and queued claims, a pause's rejections and a repeated request break no rule."""
    scene.sql("UPDATE coupon_template SET pause_epoch = pause_epoch + 1")
    drain(scene.services, TEMPLATE_ID, 0)
    scene.claim("dan", "r-dan")
    scene.claim("eve", "r-eve")

    report = check_all(scene.services, patience_s=BRIEFLY_S)

    expected = {"coupons": 3, "rejections": 1, "queued": 1}
    assert report.holds, report.breaches
    assert expected == {name: report.facts[name] for name in expected}
    assert [] == [meaning for meaning in fact_table(report.facts).columns[2].cells if not meaning]


def test_a_crash_between_commit_and_acknowledgement_is_no_breach(scene: Scene) -> None:
    """An entry that is already a coupon counts once, as the coupon."""
    claim_id = scene.claim_id("ann")
    scene.redis.xadd(
        KEYS.pending,
        {"c": claim_id, "u": "ann", "r": "r-ann", "s": 1, "t": 1_700_000_000_000, "d": "", "e": 0, "h": ""},
    )
    scene.redis.hset(KEYS.claims, str(claim_id), "1700000000000")
    scene.redis.hset(KEYS.requests, "ann r-ann", f"{claim_id} queued")

    found = broken(scene.services)

    assert set() == found


def test_a_cold_template_is_not_judged_by_its_gate(scene: Scene) -> None:
    """Redis that lost everything breaks no rule: claims are refused until the preheat."""
    scene.redis.flushall()

    found = broken(scene.services)

    assert set() == found


BREAKS: dict[str, tuple[Callable[[Scene], object], set[str]]] = {
    "a unit of stock too many": (lambda s: s.redis.incr(KEYS.stock), {"conservation"}),
    "a unit of stock too few": (lambda s: s.redis.decr(KEYS.stock), {"conservation"}),
    "a pending entry deleted": (
        lambda s: s.redis.xtrim(KEYS.pending, maxlen=0, approximate=False),
        {"conservation", "no_lost_claim", "taker_count"},
    ),
    "an issued claim still called queued": (
        lambda s: s.redis.hset(KEYS.requests, "ann r-ann", f"{s.claim_id('ann')} queued"),
        {"no_lost_claim"},
    ),
    "a settled claim kept among the queued": (
        lambda s: s.redis.hset(KEYS.claims, str(s.claim_id("ann")), "1700000000000"),
        {"no_lost_claim"},
    ),
    "a request forgotten": (lambda s: s.redis.hdel(KEYS.requests, "ann r-ann"), {"request_memory"}),
    "a request remembered as another claim": (
        lambda s: s.redis.hset(KEYS.requests, "ann r-ann", "4711 issued"),
        {"request_memory"},
    ),
    "an issued claim told as rejected": (
        lambda s: s.redis.hset(KEYS.requests, "ann r-ann", f"{s.claim_id('ann')} PAUSED"),
        {"request_memory"},
    ),
    "a taker counted twice": (lambda s: s.redis.hset(KEYS.takers, "ann", "2 1"), {"taker_count"}),
    "a queued taker not counted": (lambda s: s.redis.hset(KEYS.takers, "dan", "0 1"), {"taker_count"}),
    "a taker forgotten": (lambda s: s.redis.hdel(KEYS.takers, "ann"), {"taker_count"}),
    "a queued taker forgotten": (lambda s: s.redis.hdel(KEYS.takers, "dan"), {"taker_count"}),
    "a coupon deleted": (
        lambda s: s.sql("DELETE FROM coupon WHERE user_id = 'ann'"),
        {"conservation", "flow_history", "issued_count", "request_memory", "taker_count"},
    ),
    "the book of issued coupons moved": (
        lambda s: s.sql("UPDATE coupon_template SET issued_quantity = issued_quantity + 1"),
        {"issued_count"},
    ),
    "the book of rejections moved": (
        lambda s: s.sql("UPDATE coupon_template SET rejected_quantity = 1"),
        {"rejected_count"},
    ),
    "a history deleted": (lambda s: s.sql("DELETE FROM coupon_flow WHERE user_id = 'ann'"), {"flow_history"}),
    "a status changed without history": (
        lambda s: s.sql("UPDATE coupon SET status = 'expired' WHERE user_id = 'ann'"),
        {"flow_history"},
    ),
    "an illegal step": (
        lambda s: (
            s.sql(
                "INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, from_status, to_status, operator)"
                " SELECT user_id, coupon_id, 2, 'revoke', 'unused', 'expired', 'x' FROM coupon WHERE user_id = 'ann'"
            ),
            s.sql("UPDATE coupon SET status = 'expired', version = 2 WHERE user_id = 'ann'"),
        ),
        {"flow_history"},
    ),
    "a gap in a history": (
        lambda s: (
            s.sql(
                "INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, from_status, to_status, operator)"
                " SELECT user_id, coupon_id, 3, 'expire', 'unused', 'expired', 'x' FROM coupon WHERE user_id = 'ann'"
            ),
            s.sql("UPDATE coupon SET status = 'expired', version = 3 WHERE user_id = 'ann'"),
        ),
        {"flow_history"},
    ),
    "a claim issued and rejected": (
        lambda s: (
            s.sql(
                "INSERT INTO claim_rejection"
                " (claim_id, user_id, template_id, request_id, claim_seq, reason, claimed_at)"
                " SELECT coupon_id, user_id, template_id, 'other', 9, 'PAUSED', now() FROM coupon WHERE user_id = 'ann'"
            ),
            s.sql("UPDATE coupon_template SET rejected_quantity = 1"),
        ),
        {"one_effect", "request_memory"},
    ),
    "a second coupon of the day": (
        lambda s: s.issue_by_hand("ann", coupon_id=1, seq=2, request="more"),
        {"daily_limit"},
    ),
    "a third coupon of a user": (
        lambda s: (
            s.sql("UPDATE coupon_template SET total_quantity = 9"),
            s.redis.incrby(KEYS.stock, 4),
            s.issue_by_hand("ann", coupon_id=1, seq=2, request="more", days_ago=1),
            s.issue_by_hand("ann", coupon_id=2, seq=3, request="most", days_ago=2),
        ),
        {"user_limit"},
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_guard_is_seen(scene: Scene, name: str) -> None:
    """What was broken is reported, and nothing else."""
    break_guard, expected = BREAKS[name]

    break_guard(scene)

    assert expected == broken(scene.services)


@pytest.fixture
def without_guards(scene: Scene) -> Iterator[Scene]:
    """The scene in a database that has lost its last guards."""
    scene.sql("ALTER TABLE coupon_template DROP CONSTRAINT ck_coupon_template_never_over_issued")
    scene.sql("ALTER TABLE coupon DROP CONSTRAINT uq_coupon_request")
    yield scene
    scene.sql("TRUNCATE coupon_template, coupon")
    scene.sql(
        "ALTER TABLE coupon_template ADD CONSTRAINT ck_coupon_template_never_over_issued"
        " CHECK (issued_quantity + reserved_quantity <= total_quantity)"
    )
    scene.sql("ALTER TABLE coupon ADD CONSTRAINT uq_coupon_request UNIQUE (user_id, template_id, request_id)")


def test_a_surplus_coupon_is_seen(without_guards: Scene) -> None:
    """Three coupons more on five with three issued and one queued: six rows, and a stock below zero accounts for it."""
    for number, user in enumerate(("gus", "hal", "ivy")):
        without_guards.issue_by_hand(user, coupon_id=number + 1, seq=1, request="r")

    assert {"never_over_issued"} == broken(without_guards.services)


def test_a_request_with_two_coupons_is_seen(without_guards: Scene) -> None:
    """The same request issued twice, under two claim ids: one of them is not what the gate remembers."""
    without_guards.issue_by_hand("ann", coupon_id=1, seq=2, request="r-ann", days_ago=1)

    assert {"one_effect", "request_memory"} == broken(without_guards.services)
