"""Two implementations, one suite: risk control on real servers against a model of lists, policies and held claims.

Claims, decisions, deadlines, entries that come, go and expire, policies that change, Redis emptied, deaths at every
point: after each step both hold the same, and at last the independent checker and the reconciliation find nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import text

from coupon_workers.errors import NotFound
from coupon_workers.risk import listing
from coupon_workers.risk.policy_desk import put_policy
from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import Snowflake, wall_clock_ms
from tests.support.crash import Crash, crash_at
from tests.support.machine import run_machine
from tests.support.recon_reading import found
from tests.support.risk import POLICY, claim_from, policy, risky_sale
from tests.support.risk import rule as risk_rule
from tests.support.risk_books import RiskBooks
from tests.support.risk_crash import act, later
from tests.support.risk_model import RiskModel
from tests.support.sale import assert_sound
from tests.support.two_stores import empty_tables

TOTAL, LIMIT, WORTH = 40, 15, 2_000
_RISK_TABLES = ("risk_review", "risk_verdict", "risk_list_entry", "risk_policy", "risk_policy_version", "risk_score")

BURST = risk_rule("burst", threshold=2)
SHARE = risk_rule("share", measure="distinct_users", threshold=2, verdict="review")
LOOK = risk_rule("look", dimension="ip", threshold=1, verdict="review")
POLICIES = [
    policy(BURST, SHARE, LOOK),
    policy(BURST | {"shadow": True}, SHARE, LOOK),
    policy(BURST | {"threshold": 4}, SHARE | {"shadow": True}, LOOK | {"verdict": "reject"}, count_refused=False),
    policy(LOOK | {"threshold": 0}, SHARE, BURST | {"verdict": "allow"}),
]
"""Of the same windows: a count goes on under the next version."""

USERS = st.sampled_from(("ann", "bob", "cid", "dan"))
DEVICES, IPS = st.sampled_from(("", "d1", "d2")), st.sampled_from(("", "i1", "i2"))
SUBJECTS = st.sampled_from((("user", "dan"), ("device", "d2"), ("ip", "i2")))
CLAIMS = st.tuples(st.just("claim"), USERS, DEVICES, IPS, st.sampled_from((None, None, "settle.after_commit")))
POINTS = st.sampled_from((None, None, "review.before_commit", "review.after_commit", "review.after_tell"))
DECISIONS = st.tuples(st.just("decide"), st.sampled_from(("approve", "reject")), st.integers(0, 9), POINTS)
DEADLINES = st.tuples(st.just("deadline"), POINTS)
LISTS = st.tuples(
    st.just("list_"), st.sampled_from(("allow", "block")), SUBJECTS, st.sampled_from((None, 20, 300)), st.booleans()
)
OFFS = st.tuples(st.just("take_off"), st.sampled_from(("allow", "block")), SUBJECTS)
CHANGES = st.tuples(st.just("change"), st.sampled_from(range(len(POLICIES))))
WAITS = st.tuples(st.just("wait"), st.sampled_from((1, 9, 31, 130)))
SWEEPS = st.tuples(st.just("sweep"))
REBUILDS = st.tuples(st.just("rebuild"), st.booleans())
COMMANDS = st.sampled_from(
    [CLAIMS] * 12 + [DECISIONS] * 4 + [LISTS, LISTS, OFFS, CHANGES, CHANGES, WAITS, WAITS, SWEEPS, REBUILDS, DEADLINES]
).flatmap(lambda kind: kind)


class RiskMachine(RuleBasedStateMachine):
    """Every command acts on the real system and on the model."""

    services: Services
    monkeypatch: pytest.MonkeyPatch

    @initialize()
    def begin(self) -> None:
        """A warm template, nobody listed, nothing claimed."""
        with self.services.engine.begin() as connection:
            for table in _RISK_TABLES:
                connection.execute(text(f"DELETE FROM {table}"))
        empty_tables(self.services.engine)
        self.services.redis.flushdb()
        self.sale = risky_sale(self.services, total_quantity=TOTAL, per_user_limit=LIMIT)
        put_policy(self.services, POLICY, POLICIES[0], None)
        self.books = RiskBooks(RiskModel(POLICIES[0], WORTH), TOTAL, LIMIT)
        self.now_ms = to_ms(self.services.clock())
        self.numbers = count(1)

    @rule(command=COMMANDS)
    def do(self, command: tuple[Any, ...]) -> None:
        """One of the methods below, with its arguments."""
        getattr(self, command[0])(*command[1:])

    def claim(self, user: str, device: str, ip: str, point: str | None) -> None:
        """A new request, settled at once, or after a settling that died."""
        claim = {"user": user, "device": device, "ip": ip, "address": ""}
        expected, by, fired = self.books.decide(claim, self.now_ms)

        request = f"q{next(self.numbers)}"
        decision = claim_from(self.sale, user, request=request, device=device, ip=ip, now_ms=self.now_ms)
        try:
            with crash_at(self.monkeypatch, point):
                self.sale.drain()
        except Crash:
            self.sale.drain()

        assert expected == decision.outcome.value
        if expected == "RISK_REJECTED":
            assert by == decision.rule
        if expected == "ACCEPTED":
            self.books.accept(decision.claim_id, user, fired, by == "review")

    def decide(self, how: str, number: int, point: str | None) -> None:
        """About one of the claims that are held; or die over it."""
        if not self.books.held:
            return
        claim_id = sorted(self.books.held)[number % len(self.books.held)]
        try:
            with crash_at(self.monkeypatch, point):
                act(self.services, how, claim_id)
        except Crash:
            assert point
        if point == "review.before_commit":
            return
        self.books.end(claim_id, how == "approve")
        if point != "review.after_commit":
            self._told(how)

    def _told(self, how: str) -> None:
        """Of this one; of others that the gate has not heard of it still does not."""
        if how != "approve":
            user = self.books.untold.pop()
            self.books.stock += 1
            self.books.takers[user] -= 1

    def deadline(self, point: str | None) -> None:
        """All that is held is overdue; a sweep that dies over the first is followed by another."""
        ahead = later(self.services, hours=25)
        try:
            with crash_at(self.monkeypatch, point):
                sweep_risk(ahead)
        except Crash:
            sweep_risk(ahead)
        for claim_id in list(self.books.held):
            self.books.end(claim_id, approved=False)
        self.books.tell()
        sweep_risk(self.services)  # a day ahead the template is over: its gate is told of nobody
        self.books.sweep()

    def list_(self, name: str, subject: tuple[str, str], for_s: int | None, dies: bool) -> None:
        """Put somebody on a list; the process may die before the gates are told."""
        until_ms = None if for_s is None else self.now_ms + for_s * 1_000
        expires_at = None if until_ms is None else datetime.fromtimestamp(until_ms / 1_000, UTC)
        same = self.books.listed.get(subject) == (name, until_ms)

        def tell_nobody(*_: Any) -> None:
            raise Crash("told nobody")

        with self.monkeypatch.context() as patch:
            if dies:
                patch.setattr(listing, "tell_gates", tell_nobody)
            try:
                listing.put_entry(self.services, name, *subject, "key-1", expires_at=expires_at)  # type: ignore[arg-type]
            except Crash:
                assert dies
        self.books.listed[subject] = (name, until_ms)
        if not dies and not same:
            self.books.known[subject] = (name, until_ms)

    def take_off(self, name: str, subject: tuple[str, str]) -> None:
        """Off a list, if there."""
        try:
            listing.take_off(self.services, name, *subject, "key-1")  # type: ignore[arg-type]
        except NotFound:
            assert self.books.listed.get(subject, ("none", None))[0] != name
            return
        assert name == self.books.listed[subject][0]
        self.books.listed[subject] = self.books.known[subject] = ("none", None)

    def change(self, number: int) -> None:
        """Another policy is in force at once."""
        put_policy(self.services, POLICY, POLICIES[number], "key-1")
        self.books.rules.policy = POLICIES[number]

    def wait(self, seconds: int) -> None:
        """Time passes at the gate."""
        self.now_ms += seconds * 1_000

    def sweep(self) -> None:
        """What was not told is told."""
        sweep_risk(self.services)
        self.books.sweep()

    def rebuild(self, forgets: bool) -> None:
        """The gate is built anew, after Redis has lost everything or not."""
        if forgets:
            self.services.redis.flushdb()
        self.sale.preheat()
        self.books.rebuild(forgets)

    @invariant()
    def both_hold_the_same(self) -> None:
        """Stock and users at the gate; coupons, rejections and held claims in the database."""
        books = self.sale.books
        assert self.books.stock == self.sale.stock
        for user, taken in self.books.takers.items():
            assert str(taken) == (self.sale.taker(user) or "0").partition(" ")[0]
        assert self.books.issued == self.sale.coupons()
        assert self.books.rejected == self.sale.rejections().keys()
        assert len(self.books.held) == books["held_quantity"] == books["reserved_quantity"]
        assert TOTAL == self.books.stock + len(self.books.untold) + len(self.books.held) + len(self.books.issued)

    def teardown(self) -> None:
        """All is told; the log says what fired of every claim that was let through, and nothing differs."""
        if not hasattr(self, "sale"):
            return
        sweep_risk(self.services)
        rows = self.sale.rows("SELECT claim_id, verdict, rule, shadow FROM risk_verdict WHERE claim_id IS NOT NULL")
        logged = {(claim_id, f"{'~' if shadow else ''}{verdict} {name}") for claim_id, verdict, name, shadow in rows}
        expected = {
            (claim_id, word) for claim_id, fired in self.books.fired.items() for word in fired.split(",") if word
        }
        assert expected == logged
        assert [] == found(self.services)
        assert_sound(self.services)


@pytest.fixture
def machine(services: Services, monkeypatch: pytest.MonkeyPatch) -> type[RuleBasedStateMachine]:
    """Makes a machine on the test's servers, with identities that need no lease."""
    quick = services.settings.model_copy(update={"claim_rate": 0})
    ours = replace(services, settings=quick, next_id=Snowflake(0, wall_clock_ms).next_id)
    return type("Machine", (RiskMachine,), {"services": ours, "monkeypatch": monkeypatch})


def test_risk_control_does_what_its_model_does(machine: type[RuleBasedStateMachine]) -> None:
    """Whatever is done in whatever order, and wherever a process dies."""
    run_machine(machine, examples=30)
