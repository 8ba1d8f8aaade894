"""A worker that dies at any point of a step, or stands still: the next one goes on, each user once (FAULTS 21)."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from coupon_workers.campaigns import gate_count
from coupon_workers.campaigns.batch_control import cancel_batch
from coupon_workers.campaigns.batch_run import run_step
from coupon_workers.campaigns.batch_sweep import FORGOTTEN
from coupon_workers.claiming.gate_step import KEPT
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.campaign import Campaign, plan_campaign
from tests.support.campaign_crash import POINTS, dying_at, step_in_child, stopped_before_counting
from tests.support.sale import Sale, assert_sound, open_sale

USERS = [f"u{number}" for number in range(10)]
FIRST_STEP = 3


class Time:
    """A clock that goes as the real one, and that a test can have leap."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        return utc_now() + self.ahead

    def leap(self, by: timedelta) -> None:
        """As if nothing had happened for so long."""
        self.ahead += by + timedelta(seconds=1)


@pytest.fixture
def time() -> Time:
    """The services' clock."""
    return Time()


@pytest.fixture
def sale(services: Services, time: Time) -> Sale:
    """Thirty units, two a user: the gate would let a user claim whom it has not counted."""
    return open_sale(replace(services, clock=time), total_quantity=30, per_user_limit=2)


def go_on(campaign: Campaign, time: Time) -> None:
    """The sweep finds what does not move, and a worker takes its messages."""
    time.leap(FORGOTTEN)
    campaign.services.post.sent.clear()  # type: ignore[attr-defined]
    campaign.sweep()
    campaign.work()


def counts_of(sale: Sale) -> set[int]:
    """How many coupons the gate counts of each user."""
    return {int((sale.taker(user) or "0 0").split()[0]) for user in USERS}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("cursor", [0, FIRST_STEP])
def test_a_worker_that_is_killed_loses_nobody_and_gives_nobody_two(
    sale: Sale, time: Time, point: str, cursor: int
) -> None:
    """In the first step of a shard and in a later one: the sweep sends the message that died with it."""
    campaign = plan_campaign(sale, USERS, shards=1)
    campaign.start()
    if cursor:
        campaign.work(chunk=FIRST_STEP, most=1)

    returncode = step_in_child(sale.services.settings, campaign.batch_id, 0, cursor, FIRST_STEP, point)
    left = campaign.books["issued_count"]
    go_on(campaign, time)

    assert -signal.SIGKILL == returncode
    assert cursor + (0 if point == "campaign.before_commit" else FIRST_STEP) == left
    assert ("done", 10, 0) == tuple(campaign.books[name] for name in ("status", "issued_count", "refused_count"))
    assert (sorted(USERS), {1}, 20) == (campaign.owners(), counts_of(sale), sale.stock)
    assert 10 == len(sale.rows("SELECT 1 FROM coupon_flow"))
    assert_sound(sale.services)


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_dies_over_the_last_step_leaves_a_batch_that_ends(
    sale: Sale, time: Time, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Nobody is left to issue to, and the sweep has somebody count and finish."""
    campaign = plan_campaign(sale, USERS, shards=1)
    campaign.start()
    with dying_at(monkeypatch, point):
        run_step(sale.services, campaign.batch_id, 0, 0, chunk=100)
    before = campaign.books["status"]

    go_on(campaign, time)

    assert ("running", "done") == (before, campaign.books["status"])
    assert (sorted(USERS), {1}) == (campaign.owners(), counts_of(sale))
    assert_sound(sale.services)


def test_steps_that_die_one_after_the_other_are_counted_together(
    sale: Sale, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times in a row after the commit; the fourth worker counts for all of them."""
    campaign = plan_campaign(sale, USERS, shards=1)
    campaign.start()
    for cursor in (0, 3, 6):
        with dying_at(monkeypatch, "campaign.after_commit"):
            run_step(sale.services, campaign.batch_id, 0, cursor, chunk=3)
    uncounted = counts_of(sale)

    go_on(campaign, time)

    assert ({0}, {1}) == (uncounted, counts_of(sale))
    assert_sound(sale.services)


def test_a_worker_that_dies_between_two_pieces_of_a_count_leaves_the_rest_to_the_next(
    sale: Sale, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of seven pieces, some of its users refused: whoever was counted before the death is not counted again."""
    monkeypatch.setattr(gate_count, "PIECE", 1)
    for user in USERS[2:5]:
        for request in ("r1", "r2"):
            sale.claim(user, request)
    sale.drain()
    campaign = plan_campaign(sale, USERS, shards=1)
    campaign.start()
    with dying_at(monkeypatch, "campaign.amid_count"):
        run_step(sale.services, campaign.batch_id, 0, 0, chunk=10)
    counted = [int((sale.taker(user) or "0 0").split()[0]) for user in USERS]

    monkeypatch.setattr(gate_count, "PIECE", 2)
    go_on(campaign, time)

    assert [1, 0, 2, 2, 2, 0, 0, 0, 0, 0] == counted
    assert [1, 1, 2, 2, 2, 1, 1, 1, 1, 1] == [int((sale.taker(user) or "0 0").split()[0]) for user in USERS]
    assert ("done", 7, 3) == tuple(campaign.books[name] for name in ("status", "issued_count", "refused_count"))
    assert_sound(sale.services)


def test_a_piece_that_comes_twice_is_counted_once(sale: Sale, time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker stands still before its count, another dies amid the same; then both go on, the pieces of each cut
    elsewhere."""
    campaign = plan_campaign(sale, USERS, shards=1)
    campaign.start()
    stopped: list[Callable[[], None]] = []
    with stopped_before_counting(monkeypatch, stopped):
        run_step(sale.services, campaign.batch_id, 0, 0, chunk=10)
    [count] = stopped
    monkeypatch.setattr(gate_count, "PIECE", 3)
    with dying_at(monkeypatch, "campaign.amid_count"):
        count()
    counted = [int((sale.taker(user) or "0 0").split()[0]) for user in USERS]

    for piece in (2, 4):
        monkeypatch.setattr(gate_count, "PIECE", piece)
        count()

    assert [1] * 3 + [0] * 7 == counted
    assert {1} == counts_of(sale)
    go_on(campaign, time)
    assert ("done", {1}) == (campaign.books["status"], counts_of(sale))
    assert_sound(sale.services)


def test_a_batch_that_is_cancelled_after_a_death_is_counted_by_the_sweep(
    sale: Sale, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step comes any more; whoever has a coupon of it may claim one more, not two."""
    campaign = plan_campaign(sale, USERS, shards=1)
    campaign.start()
    with dying_at(monkeypatch, "campaign.after_commit"):
        run_step(sale.services, campaign.batch_id, 0, 0, chunk=10)
    cancel_batch(sale.services, campaign.batch_id, "key-2")

    time.leap(FORGOTTEN)
    first, second = campaign.sweep(), campaign.sweep()

    assert (1, 0, {1}) == (first["counted"], second["counted"], counts_of(sale))
    assert [ClaimOutcome.ACCEPTED, ClaimOutcome.LIMIT_REACHED] == [
        sale.claim("u3", request).outcome for request in ("r1", "r2")
    ]
    sale.drain()
    assert_sound(sale.services)


@pytest.mark.parametrize("ends", ["done", "cancelled"])
@pytest.mark.parametrize("preheats", [False, True])
def test_a_worker_that_stood_still_after_its_commit_counts_nobody_again(
    sale: Sale, time: Time, monkeypatch: pytest.MonkeyPatch, ends: str, preheats: bool
) -> None:
    """Others have counted for it, the batch has ended, the gate was rebuilt; then it goes on."""
    campaign = plan_campaign(sale, USERS, shards=1)
    campaign.start()
    stopped: list[Callable[[], None]] = []
    with stopped_before_counting(monkeypatch, stopped):
        run_step(sale.services, campaign.batch_id, 0, 0, chunk=10)
    if ends == "cancelled":
        cancel_batch(sale.services, campaign.batch_id, "key-2")
    go_on(campaign, time)
    if preheats:
        sale.preheat()
    [count] = stopped

    count()

    assert (ends, {1}) == (campaign.books["status"], counts_of(sale))
    assert_sound(sale.services)


def test_what_was_counted_is_forgotten_when_no_step_can_come_again(sale: Sale, time: Time) -> None:
    """By the end of the next batch, or a preheat: the gate does not grow with each batch there ever was."""
    fields: list[int] = []
    for number in range(3):
        campaign = plan_campaign(sale, [f"{user}-{number}" for user in USERS[:4]])
        campaign.start()
        campaign.work()
        keys: Any = sale.services.redis.hkeys(sale.keys.meta)
        fields.append(sum(key.startswith(b"step:") for key in keys))
        time.leap(KEPT)

    assert [2, 2, 2] == fields
    assert_sound(sale.services)
