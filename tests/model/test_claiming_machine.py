"""Two implementations, one suite: gate, settling and preheat on real servers against the model of claiming.

Whatever happens in whatever order, a crash at any point, Redis emptied or rewound, both hold the same after each step,
and what DESIGN 3 (1-4) says holds of it.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.pending import EndedClaim, PendingClaim, acknowledge
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import Snowflake, wall_clock_ms
from tests.support.claiming_model import Books, End, Entry, Gate, Rules
from tests.support.crash import Crash, crash_at
from tests.support.redis_dump import restore, snapshot
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.template import change_template
from tests.support.two_stores import empty_tables, model_view, real_view

STATES_KEPT = 4
LIMIT = 2
BATCH = 3
TOTAL = 4
USERS = st.sampled_from(["ann", "bob", "cat"])
REQUESTS = st.sampled_from(["r1", "r2", "r3", "r4"])
BEFORE_COMMIT = ("settle.before_insert", "settle.after_insert")


class ClaimingMachine(RuleBasedStateMachine):
    """Every rule acts on the real system and on the model."""

    services: Services
    monkeypatch: pytest.MonkeyPatch

    @initialize()
    def begin(self) -> None:
        """A warm template, nothing claimed."""
        empty_tables(self.services.engine)
        self.services.redis.flushdb()
        self.sale: Sale = open_sale(self.services, total_quantity=TOTAL, per_user_limit=LIMIT)
        self.books = Books(Rules(total=TOTAL), LIMIT)
        self.gate = self.books.build_gate([])
        self.whole = True  # the gate knows all that the books know
        self.last_batch: list[End] = []
        self.kept: deque[tuple[Any, Gate]] = deque(maxlen=STATES_KEPT)

    @rule(asked=st.lists(st.tuples(USERS, REQUESTS), min_size=1, max_size=4))
    def claim(self, asked: list[tuple[str, str]]) -> None:
        """Claim some, for the first time or again."""
        self._keep()
        for user, request in asked:
            self._claim(user, request)

    def _claim(self, user: str, request: str) -> None:
        expected, answer = self.gate.decide(user, request, LIMIT)

        decision = self.sale.claim(user, request)

        assert expected == decision.outcome.value
        if answer is not None:
            assert answer == (decision.claim_id, decision.state)
        if expected == "ACCEPTED":
            self.gate.accept(user, request, decision.claim_id, self._newest_entry())

    def _newest_entry(self) -> tuple[int, int]:
        entries: Any = self.services.redis.xrevrange(self.sale.keys.pending, count=1)
        entry_id = entries[0][0]
        milliseconds, _, number = entry_id.decode().partition("-")
        return int(milliseconds), int(number)

    @rule()
    def drain(self) -> None:
        """Settle all that is pending."""
        self._keep()
        settled = self.sale.drain()

        assert len(self.gate.pending) == settled
        while self.gate.pending:
            self.gate.acknowledge(self._commit(self.gate.pending[:BATCH]))

    def _commit(self, entries: list[Entry]) -> list[End]:
        self.last_batch = self.books.settle(entries)
        return self.last_batch

    @rule(point=st.sampled_from([*BEFORE_COMMIT, "settle.after_commit", "settle.after_acknowledge"]))
    def drain_and_die(self, point: str) -> None:
        """A worker dies over its first batch; when that was a full one, it has committed the second meanwhile."""
        self._keep()
        first, second = self.gate.pending[:BATCH], self.gate.pending[BATCH : 2 * BATCH]
        try:
            with crash_at(self.monkeypatch, point):
                self.sale.drain()
        except Crash:
            pass

        if first and point not in BEFORE_COMMIT:
            ended = self._commit(first)
            if second:
                self._commit(second)
            if point == "settle.after_acknowledge":
                self.gate.acknowledge(ended)

    @precondition(lambda self: self.last_batch)
    @rule()
    def acknowledge_again(self) -> None:
        """A worker that was stopped after its commit goes on now, whatever has happened meanwhile."""
        ended = [EndedClaim(_pending(end), end.reason, "{} {}".format(*end.answer)) for end in self.last_batch]

        acknowledge(self.services.redis, self.sale.keys, ended, (ended[0].claim.entry_id, ended[-1].claim.entry_id))

        self.gate.acknowledge(self.last_batch)

    @rule(told=st.booleans())
    def pause_or_resume(self, told: bool) -> None:
        """Change the status; the gate hears of it now or later."""
        rules = self.books.rules
        rules.paused = not rules.paused
        rules.epoch += rules.paused
        self._change(told, status="paused" if rules.paused else "active", pause_epoch=rules.epoch)

    @rule(more=st.integers(-2, 2), told=st.booleans())
    def change_total(self, more: int, told: bool) -> None:
        """More units or fewer; never fewer than are issued."""
        rules = self.books.rules
        rules.total = max(1, len(self.books.coupons), rules.total + more)
        self._change(told, total_quantity=rules.total)

    def _change(self, told: bool, **columns: Any) -> None:
        change_template(self.services.engine, self.sale.template_id, **columns)
        self.books.rules.version += 1
        if told:
            self.tell_the_gate()

    @rule()
    def tell_the_gate(self) -> None:
        """Bring the newest change, as the sweep does."""
        sync_template(self.services, self.sale.template_id)

        self.gate.sync(self.books.rules)

    @rule()
    def preheat(self) -> None:
        """At any time, with claims pending and entries settled but not acknowledged."""
        self.sale.preheat()

        self.gate = self.books.build_gate(self.gate.pending)
        self.whole = True

    @rule()
    def preheat_and_die(self) -> None:
        """Before the swap: the live keys stay as they are."""
        try:
            with crash_at(self.monkeypatch, "preheat.before_swap"):
                self.sale.preheat()
        except Crash:
            pass

    @rule(stream_too=st.booleans())
    def lose(self, stream_too: bool) -> None:
        """Redis comes back empty, or with nothing but the pending stream."""
        client, pending = self.services.redis, self.sale.keys.pending.encode()
        keys = [key for key in client.keys("*") if stream_too or key != pending]
        client.unlink("nothing", *keys)

        self.gate = Gate(False, Rules(), 0, pending=[] if stream_too else self.gate.pending)

    def _keep(self) -> None:
        self.kept.append((snapshot(self.services.redis), copy.deepcopy(self.gate)))

    @precondition(lambda self: self.kept)
    @rule(steps=st.integers(1, STATES_KEPT))
    def rewind(self, steps: int) -> None:
        """Redis comes back as it was some steps ago; the gate does not know what has happened since."""
        keys, gate = self.kept[-min(steps, len(self.kept))]
        restore(self.services.redis, keys)

        self.gate = copy.deepcopy(gate)
        self.whole = False

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
    return PendingClaim(entry_id, entry.claim_id, entry.user, entry.request, entry.seq, 1, "", entry.epoch, None)


@pytest.fixture
def machine(services: Services, monkeypatch: pytest.MonkeyPatch) -> type[RuleBasedStateMachine]:
    """Makes a machine on the test's servers, with small batches and identities that need no lease."""
    ids = Snowflake(0, wall_clock_ms)
    small = services.settings.model_copy(update={"settle_batch": BATCH, "claim_rate": 0})
    ours = replace(services, settings=small, next_id=ids.next_id)
    return type("Machine", (ClaimingMachine,), {"services": ours, "monkeypatch": monkeypatch})


def test_claiming_does_what_its_model_does(machine: type[RuleBasedStateMachine]) -> None:
    """Thirty steps of any kind, forty times; the same ones in every run.

    A failure is told with all its steps: to find the few that matter, add ``Phase.shrink`` and wait some minutes.
    """
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            print_blob=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
