"""Two implementations, one suite: gate, settling and preheat on real servers against the model of claiming.

Whatever happens in whatever order, coupons given by hand, a crash at any point, Redis emptied or rewound, both hold the
same after each step, and what DESIGN 3 (1-4) says holds of it. Once with a template whose amount is fixed, once with
one that has a pool.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.pending import EndedClaim, PendingClaim, acknowledge
from coupon_workers.coupons.reissue import Reissued
from coupon_workers.errors import Conflict
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import Snowflake, wall_clock_ms
from tests.support.claiming_model import Books, End, Gate, Rules
from tests.support.crash import Crash, crash_at
from tests.support.machine import run_machine
from tests.support.pool import open_pool
from tests.support.redis_dump import restore, snapshot
from tests.support.reissuing import reissue
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.template import change_template
from tests.support.two_stores import empty_tables, model_view, real_view

STATES_KEPT = 4
LIMIT = 2
BATCH = 3
TOTAL = 4
POOL: dict[str, Any] = {"min": 1, "max": 5, "budget": 11, "distribution": "uniform"}
USERS = st.sampled_from(["ann", "bob", "cat"])
REQUESTS = st.sampled_from(["r1", "r2", "r3", "r4"])
BEFORE_COMMIT = ("settle.before_insert", "settle.after_insert")


CLAIMS = st.tuples(st.just("claim"), st.lists(st.tuples(USERS, REQUESTS), min_size=1, max_size=5))
SETTLES = st.tuples(
    st.just("settle"),
    st.sampled_from([None, None, *BEFORE_COMMIT, "settle.after_commit", "settle.after_acknowledge"]),
)
CHANGES = st.tuples(st.just("change"), st.sampled_from(["status", "one more", "two fewer", "nothing"]), st.booleans())
AGAIN = st.tuples(st.just("acknowledge_again"))
GIFTS = st.tuples(st.just("give"), USERS, REQUESTS, st.booleans())
PREHEATS = st.tuples(st.just("preheat"), st.booleans())
LOSSES = st.tuples(st.just("lose"), st.booleans(), st.sampled_from([True, True, False]))
REWINDS = st.tuples(st.just("rewind"), st.integers(1, STATES_KEPT))
KINDS = [CLAIMS] * 7 + [SETTLES] * 6 + [CHANGES] * 3 + [GIFTS, GIFTS, AGAIN, AGAIN, PREHEATS, PREHEATS, LOSSES, REWINDS]
COMMANDS = st.sampled_from(KINDS).flatmap(lambda kind: kind)
"""One strategy for all: of rules, Hypothesis turns some off in each example, and the others alone do little."""


class ClaimingMachine(RuleBasedStateMachine):
    """Every command acts on the real system and on the model."""

    services: Services
    monkeypatch: pytest.MonkeyPatch
    has_pool: bool

    @initialize()
    def begin(self) -> None:
        """A warm template, nothing claimed."""
        empty_tables(self.services.engine)
        self.services.redis.flushdb()
        limits = {"total_quantity": TOTAL, "per_user_limit": LIMIT}
        self.books = Books(Rules(total=TOTAL), LIMIT)
        if self.has_pool:
            pooled = open_pool(self.services, pool=POOL, **limits)
            self.sale: Sale = pooled
            self.books.pool, self.books.drawn_instead = pooled.pool(), lambda claim_id: pooled.worth()[claim_id]
        else:
            self.sale = open_sale(self.services, **limits)
        self.gate = self.books.build_gate([])
        self.whole = True  # the gate knows all that the books know
        self.exact = True  # and its pool is what the books have left
        self.last_batch: list[End] = []
        self.kept: deque[tuple[Any, Gate]] = deque(maxlen=STATES_KEPT)

    @rule(command=COMMANDS)
    def do(self, command: tuple[Any, ...]) -> None:
        """One of the methods below, with its arguments."""
        getattr(self, command[0])(*command[1:])

    def claim(self, asked: list[tuple[str, str]]) -> None:
        """Claim some, for the first time or again."""
        self._keep()
        for user, request in asked:
            expected, answer = self.gate.decide(user, request, LIMIT)
            decision = self.sale.claim(user, request)
            assert expected == decision.outcome.value
            if answer is not None:
                assert answer == (decision.claim_id, decision.state)
            if expected == "ACCEPTED":
                self.gate.accept(user, request, decision.claim_id, *self._newest_entry())

    def _newest_entry(self) -> tuple[tuple[int, int], int | None]:
        """Its id, and the value that was drawn."""
        entries: Any = self.services.redis.xrevrange(self.sale.keys.pending, count=1)
        entry_id, fields = entries[0]
        milliseconds, _, number = entry_id.decode().partition("-")
        return (int(milliseconds), int(number)), int(fields[b"v"]) if fields.get(b"v") else None

    def settle(self, point: str | None) -> None:
        """Drain all that is pending, or die over the first batch.

        When that was a full one, the second has been committed meanwhile.
        """
        self._keep()
        entries = list(self.gate.pending)
        try:
            with crash_at(self.monkeypatch, point):
                self.sale.drain()
        except Crash:
            assert entries
        if point in BEFORE_COMMIT:
            return
        for start in range(0, 2 * BATCH if point else len(entries), BATCH):
            batch = entries[start : start + BATCH]
            if batch:
                self.last_batch = self.books.settle(batch)
            if batch and (point is None or (start == 0 and point == "settle.after_acknowledge")):
                self.gate.acknowledge(self.last_batch)
            elif batch and any(end.redrawn is not None for end in self.last_batch):
                self.exact = False  # the gate was not told what it must pass over

    def acknowledge_again(self) -> None:
        """A worker that was stopped after its commit goes on now, whatever has happened meanwhile."""
        if not self.last_batch:
            return
        ended = [
            EndedClaim(_pending(end), end.reason, "{} {}".format(*end.answer), end.redrawn) for end in self.last_batch
        ]

        acknowledge(self.services.redis, self.sale.keys, ended, (ended[0].claim.entry_id, ended[-1].claim.entry_id))

        self.gate.acknowledge(self.last_batch)

    def change(self, what: str, told: bool) -> None:
        """Pause or resume, or move the total, never below what is issued; the gate hears of it now or later."""
        rules = self.books.rules
        if self.has_pool and what in ("one more", "two fewer"):
            what = "nothing"  # a budget is shared out once
        if what == "status":
            rules.paused = not rules.paused
            rules.epoch += rules.paused
        if what in ("one more", "two fewer"):
            rules.total = max(1, len(self.books.coupons), rules.total + (1 if what == "one more" else -2))
        if what != "nothing":
            rules.version += 1
            change_template(
                self.services.engine,
                self.sale.template_id,
                status="paused" if rules.paused else "active",
                pause_epoch=rules.epoch,
                total_quantity=rules.total + len(self.books.given),
            )
        if told:
            sync_template(self.services, self.sale.template_id)
            self.gate.sync(rules)

    def give(self, user: str, request: str, dies: bool) -> None:
        """An operator gives a coupon by hand; or dies before he tells the gate."""
        self._keep()
        expected = self.books.give(user, request, self.gate)
        dies = dies and expected == "GIVEN"
        heard: Any = None
        try:
            with crash_at(self.monkeypatch, "reissue.after_commit" if dies else None):
                heard = reissue(self.sale.services, self.sale.template_id, user, request)
        except Conflict as error:
            heard = error
        except Crash:
            heard = reissue(self.sale.services, self.sale.template_id, user, request)
        if expected == "GIVEN":
            self.books.given[user, request] = heard.coupon_id
        if expected in ("GIVEN", "REPLAYED"):
            replayed = dies or expected == "REPLAYED"
            assert Reissued(self.books.given[user, request], replayed=replayed) == heard
        else:
            assert expected == heard.code
        if expected == "GIVEN" and not dies:
            self.gate.sync(self.books.rules)

    def preheat(self, dies: bool) -> None:
        """At any time, with claims pending and entries settled but not acknowledged; or die before the swap."""
        try:
            with crash_at(self.monkeypatch, "preheat.before_swap" if dies else None):
                self.sale.preheat()
        except Crash:
            return
        self.gate = self.books.build_gate(self.gate.pending)
        self.whole = self.exact = True

    def lose(self, stream_too: bool, preheats: bool) -> None:
        """Redis comes back empty, or with nothing but the pending stream; mostly it is rebuilt at once."""
        client, pending = self.services.redis, self.sale.keys.pending.encode()
        keys = [key for key in client.keys("*") if stream_too or key != pending]
        client.unlink("nothing", *keys)

        self.gate = Gate(False, Rules(), 0, pending=[] if stream_too else self.gate.pending)
        if preheats:
            self.preheat(dies=False)

    def _keep(self) -> None:
        self.kept.append((snapshot(self.services.redis), copy.deepcopy(self.gate)))

    def rewind(self, steps: int) -> None:
        """Redis comes back as it was some steps ago; the gate does not know what has happened since."""
        if not self.kept:
            return
        keys, gate = self.kept[-min(steps, len(self.kept))]
        restore(self.services.redis, keys)

        self.gate = copy.deepcopy(gate)
        self.whole = self.exact = False

    @invariant()
    def both_hold_the_same(self) -> None:
        """Every key and every row."""
        assert model_view(self.gate, self.books) == real_view(self.sale)

    @invariant()
    def the_rules_hold(self) -> None:
        """DESIGN 3: never over-issue, limits, one effect a request, conservation."""
        held = Counter(user for user, _, _ in self.books.coupons.values())
        issued = [(user, request) for user, request, _ in self.books.coupons.values()]
        assert len(self.books.coupons) <= self.books.rules.total
        assert max(held.values(), default=0) <= LIMIT
        assert len(issued) == len(set(issued))
        assert not self.books.coupons.keys() & self.books.rejections.keys()
        if self.gate.warm and self.whole:
            waiting = [entry for entry in self.gate.pending if entry.claim_id not in self.books.coupons]
            assert self.gate.rules.total == self.gate.stock + len(waiting) + len(self.books.coupons)

    @invariant()
    def no_value_is_issued_more_often_than_the_pool_has_it(self) -> None:
        """DESIGN 11: and what is not issued is queued or listed, as long as Redis has forgotten nothing."""
        if self.books.pool is None:
            return
        assert self.books.coupons.keys() == self.books.worth.keys()
        assert Counter(self.books.worth.values()) <= self.books.pool
        assert POOL["budget"] >= sum(self.books.worth.values())
        if self.gate.warm and self.exact:
            waiting = [entry.value for entry in self.gate.pending if entry.claim_id not in self.books.coupons]
            given = self.gate.pool.copy()
            given.update(value for value in waiting if value is not None)
            assert self.books.left() == +given

    def teardown(self) -> None:
        """At last everything is brought to rest, and the independent checker finds nothing."""
        if not hasattr(self, "sale"):
            return
        self.sale.preheat()
        self.sale.drain()
        assert_sound(self.services)
        assert 0 == self.sale.queued


def _pending(end: End) -> PendingClaim:
    entry = end.entry
    entry_id = "{}-{}".format(*entry.entry_id)
    return PendingClaim(
        entry_id, entry.claim_id, entry.user, entry.request, entry.seq, 1, "", entry.epoch, None, entry.value
    )


@pytest.fixture(params=[False, True], ids=["fixed amount", "pool"])
def machine(
    services: Services, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> type[RuleBasedStateMachine]:
    """Makes a machine on the test's servers, with small batches and identities that need no lease."""
    ids = Snowflake(0, wall_clock_ms)
    small = services.settings.model_copy(update={"settle_batch": BATCH, "claim_rate": 0})
    ours = replace(services, settings=small, next_id=ids.next_id)
    return type(
        "Machine", (ClaimingMachine,), {"services": ours, "monkeypatch": monkeypatch, "has_pool": request.param}
    )


def test_claiming_does_what_its_model_does(machine: type[RuleBasedStateMachine]) -> None:
    """Whatever is done in whatever order, and wherever a process dies."""
    run_machine(machine, examples=60)
