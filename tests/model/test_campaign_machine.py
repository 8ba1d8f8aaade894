"""Batches, claims, settling and preheats of one template, on real servers, against a model of them.

Messages come twice, late and in any order, workers die at any point of a step, Redis loses everything; after each
command the tables hold what the model holds, and the gate refuses nobody who may still have a coupon.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coupon_workers.campaigns.batch_control import cancel_batch, pause_batch, resume_batch
from coupon_workers.campaigns.batch_run import run_step
from coupon_workers.campaigns.batch_sweep import FORGOTTEN, sweep_batches
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import Conflict
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import Snowflake, wall_clock_ms
from coupon_workers.templates.template_desk import pause_template, resume_template
from tests.support.campaign import Campaign, plan_campaign
from tests.support.campaign_crash import POINTS, dying_at, stopped_before_counting
from tests.support.campaign_model import OPEN, CampaignModel, ModelBatch
from tests.support.campaign_view import empty_tables, real_view
from tests.support.machine import run_machine
from tests.support.sale import Sale, assert_sound, open_sale

EVERYBODY = [f"u{number}" for number in range(9)]
AUDIENCES = (EVERYBODY[:7], EVERYBODY[3:])
SHARDS = (2, 3)

WHICH = st.integers(0, 1)
STOPPED = "stopped"
DEATHS = st.sampled_from([None, None, None, *POINTS, STOPPED])
STARTS = st.tuples(st.just("start"), WHICH)
STEPS = st.tuples(st.just("step"), st.integers(0, 60), st.integers(1, 4), DEATHS)
NEWEST = st.tuples(st.just("step"), st.integers(-3, -1), st.integers(1, 4), DEATHS)
CLAIMS = st.tuples(st.just("claim"), st.lists(st.sampled_from(EVERYBODY), min_size=1, max_size=4))
DRAINS = st.tuples(st.just("drain"))
PREHEATS = st.tuples(st.just("preheat"))
LOSSES = st.tuples(st.just("lose"), st.sampled_from([True, True, False]))
CONTROLS = st.tuples(st.just("control"), st.sampled_from(["pause", "resume", "resume", "cancel"]), WHICH)
TEMPLATE = st.tuples(st.just("stop_or_go"))
SWEEPS = st.tuples(st.just("sweep"))
LATE = st.tuples(st.just("go_on"))
KINDS = [STARTS, STARTS, *[STEPS] * 4, *[NEWEST] * 8, CLAIMS, CLAIMS, DRAINS, DRAINS, PREHEATS, LOSSES, CONTROLS]
COMMANDS = st.sampled_from([*KINDS, TEMPLATE, SWEEPS, SWEEPS, LATE]).flatmap(lambda kind: kind)


class CampaignMachine(RuleBasedStateMachine):
    """Every command acts on the real system and on the model."""

    services: Services
    monkeypatch: pytest.MonkeyPatch

    @initialize(
        limit=st.sampled_from([1, 1, 2, None]),
        total=st.sampled_from([5, 9, 14, 40]),
        policies=st.tuples(*[st.sampled_from(["best_effort", "all_or_nothing"])] * 2),
    )
    def begin(self, limit: int | None, total: int, policies: tuple[str, str]) -> None:
        """Two batches that are ready, with users in common."""
        empty_tables(self.services.engine)
        self.services.redis.flushdb()
        self.late = timedelta(0)
        self.post.sent.clear()
        ours = replace(self.services, clock=self.clock)
        self.sale: Sale = open_sale(ours, total_quantity=total, per_user_limit=limit)
        self.campaigns = [
            plan_campaign(self.sale, users, shards=shards, policy=policy)
            for users, shards, policy in zip(AUDIENCES, SHARDS, policies, strict=True)
        ]
        self.model = CampaignModel(total, limit, [self._modelled(campaign) for campaign in self.campaigns])
        self.claims = 0
        self.stopped: list[Callable[[], None]] = []

    @property
    def post(self) -> Any:
        """Every message that was ever sent."""
        return self.services.post

    def clock(self) -> datetime:
        """The time, which sweeps move."""
        return utc_now() + self.late

    def _modelled(self, campaign: Campaign) -> ModelBatch:
        rows = self.sale.rows(
            "SELECT array_agg(user_id ORDER BY member_no) FROM audience_member"
            f" WHERE batch_id = {campaign.batch_id} GROUP BY shard ORDER BY shard"
        )
        shards = [list(row[0]) for row in rows]
        return ModelBatch(shards, campaign.books["policy"], cursors=[0] * len(shards))

    @rule(command=COMMANDS)
    def do(self, command: tuple[Any, ...]) -> None:
        """One of the methods below, with its arguments."""
        getattr(self, command[0])(*command[1:])

    def start(self, which: int) -> None:
        """Start a batch, for the first time or again."""
        self.campaigns[which].start()
        self.model.start(self.model.batches[which])

    def step(self, message: int, chunk: int, point: str | None) -> None:
        """Any message that was ever sent, or one of the last; its worker may die."""
        sent = [task.args for task in self.post.sent if task.name == "issue_shard"]
        if sent:
            self._take(sent[message % len(sent) if message >= 0 else max(message, -len(sent))], chunk, point)

    def _take(self, message: tuple[int, int, int], chunk: int, point: str | None) -> None:
        batch_id, shard, cursor = message
        stops = stopped_before_counting(self.monkeypatch, self.stopped)
        with stops if point == STOPPED else dying_at(self.monkeypatch, point):
            run_step(self.sale.services, batch_id, shard, cursor, chunk=chunk)
        if point != "campaign.before_commit":
            which = [campaign.batch_id for campaign in self.campaigns].index(batch_id)
            self.model.step(self.model.batches[which], shard, cursor, chunk)
        self._note_ends()

    def go_on(self) -> None:
        """A worker that was stopped after its commit counts now, whatever has happened meanwhile."""
        for count in self.stopped:
            count()
        self.stopped.clear()

    def _note_ends(self) -> None:
        """A batch may be done as soon as nobody is left, never before."""
        for campaign, batch in zip(self.campaigns, self.model.batches, strict=True):
            if batch.status == "running" and campaign.books["status"] == "done":
                assert batch.through
                self.model.end(batch, "done")

    def claim(self, users: list[str]) -> None:
        """Claims of the same users; nobody is refused who may have one more."""
        for user in users:
            self.claims += 1
            outcome = self.sale.claim(user, f"r{self.claims}").outcome
            waiting = sum(user == queued for queued, _ in self.model.pending)
            if outcome is ClaimOutcome.ACCEPTED:
                self.model.pending.append((user, self.model.epoch))
            elif outcome is ClaimOutcome.LIMIT_REACHED:
                assert self.model.limit is not None and self.model.held(user) + waiting >= self.model.limit
            elif outcome is ClaimOutcome.SOLD_OUT:
                assert self.model.room - len(self.model.pending) <= 0
            else:
                assert outcome is (ClaimOutcome.PAUSED if self.model.warm else ClaimOutcome.NOT_WARMED)

    def drain(self) -> None:
        """Settle."""
        self.sale.drain()
        self.model.drain()

    def preheat(self) -> None:
        """At any time."""
        self.sale.preheat()
        self.model.warm = True

    def lose(self, preheats: bool) -> None:
        """Redis comes back empty: claims that nobody had settled are gone."""
        self.services.redis.flushdb()
        self.model.warm, self.model.pending = False, []
        if preheats:
            self.preheat()

    def control(self, what: str, which: int) -> None:
        """What an operator may do to a batch at any moment."""
        act = {"pause": pause_batch, "resume": resume_batch, "cancel": cancel_batch}[what]
        allowed = {
            "pause": OPEN,
            "resume": ("paused", "running"),
            "cancel": (*OPEN, "cancelled"),
        }[what]
        batch = self.model.batches[which]
        try:
            act(self.sale.services, self.campaigns[which].batch_id, "key-2")
        except Conflict:
            assert batch.status not in allowed
            return
        assert batch.status in allowed
        if what == "cancel":
            self.model.end(batch, "cancelled")
        elif what == "pause":
            batch.status = "paused"
        elif batch.status == "paused":
            batch.status = "running" if batch.started else "ready"

    def stop_or_go(self) -> None:
        """Pause the template, or let it go on."""
        act = resume_template if self.model.paused else pause_template
        act(self.sale.services, self.sale.template_id)
        self.model.paused = not self.model.paused
        self.model.epoch += self.model.paused

    def sweep(self) -> None:
        """So late that whatever does not move is forgotten. It starts what is ready."""
        self.late += FORGOTTEN + timedelta(seconds=1)
        sweep_batches(self.sale.services)
        for batch in self.model.batches:
            self.model.start(batch)
        self._note_ends()

    @invariant()
    def both_hold_the_same(self) -> None:
        """Every batch, every coupon, the template's books; nobody has more than he may."""
        assert self.model.view() == real_view(self.campaigns)
        assert self.model.room >= 0
        assert self.model.limit is None or max(map(self.model.held, EVERYBODY)) <= self.model.limit

    def teardown(self) -> None:
        """The sweep alone brings everything to its end, and the independent checker finds nothing."""
        if not hasattr(self, "sale"):
            return
        if self.model.paused:
            self.stop_or_go()
        if not self.model.warm:
            self.preheat()
        for which, batch in enumerate(self.model.batches):
            if batch.status == "paused":
                self.control("resume", which)
        for _ in range(8):
            self.post.sent.clear()
            self.sweep()
            for task in [task for task in self.post.sent if task.name == "issue_shard"]:
                self._take(task.args, 3, None)
            if not [batch for batch in self.model.batches if batch.status in OPEN]:
                break
        self.sweep()
        self.go_on()
        self.drain()
        self.both_hold_the_same()
        assert not [batch for batch in self.model.batches if batch.status in OPEN]
        assert_sound(self.services)


@pytest.fixture
def machine(services: Services, monkeypatch: pytest.MonkeyPatch) -> type[RuleBasedStateMachine]:
    """Makes a machine on the test's servers, with identities that need no lease."""
    ids = Snowflake(0, wall_clock_ms)
    small = services.settings.model_copy(update={"claim_rate": 0})
    ours = replace(services, settings=small, next_id=ids.next_id)
    return type("Machine", (CampaignMachine,), {"services": ours, "monkeypatch": monkeypatch})


def test_batches_do_what_their_model_does(machine: type[RuleBasedStateMachine]) -> None:
    """Of two batches, whatever happens to them and in whatever order."""
    run_machine(machine, examples=40)
