"""Batches and everybody else at once: workers, operators, settling, preheats, claims (DESIGN 3, 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from coupon_workers.campaigns.batch_control import cancel_batch, pause_batch, resume_batch
from coupon_workers.campaigns.batch_run import finish_batch, run_step
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import Conflict
from coupon_workers.runtime.services import Services
from tests.support.campaign import Campaign, plan_campaign
from tests.support.gift import at_once
from tests.support.sale import Sale, assert_sound, open_sale

USERS = [f"u{number}" for number in range(120)]
ROUNDS = 4


@pytest.fixture
def sale(services: Services) -> Sale:
    """Enough for everybody, one a user."""
    return open_sale(services, total_quantity=1_000, per_user_limit=1)


def cursors(campaign: Campaign) -> list[tuple[int, int, int]]:
    """Shard, where it stands, its end; of the shards that are not through."""
    rows = campaign.sale.rows(
        "SELECT shard, cursor, member_count FROM issue_shard"
        f" WHERE batch_id = {campaign.batch_id} AND gate_cursor < member_count ORDER BY shard"
    )
    return [(row[0], row[1], row[2]) for row in rows]


def keep_working(campaign: Campaign, *, chunk: int = 5) -> None:
    """A worker that takes every shard in turn, wherever it stands, while the batch runs."""
    while campaign.books["status"] == "running":
        for shard, cursor, _ in cursors(campaign):
            run_step(campaign.services, campaign.batch_id, shard, cursor, chunk=chunk)
        finish_batch(campaign.services, campaign.batch_id)


def all_returned(outcomes: list[object]) -> bool:
    """Whether nobody failed."""
    return not [outcome for outcome in outcomes if isinstance(outcome, BaseException)]


@pytest.mark.parametrize("shards", [1, 3])
def test_two_workers_on_the_same_shards_give_each_user_one(sale: Sale, shards: int) -> None:
    """Whoever finds the shard taken, or its cursor moved, does nothing; the batch ends once."""
    campaign = plan_campaign(sale, USERS, shards=shards)
    campaign.start()

    outcomes = at_once(*[lambda: keep_working(campaign)] * 3)

    assert all_returned(outcomes), outcomes
    assert ("done", 120) == (campaign.books["status"], campaign.books["issued_count"])
    assert sorted(USERS) == campaign.owners()
    assert [(1,)] == sale.rows("SELECT count(*) FROM outbox WHERE event = 'batch.finished'")
    assert_sound(sale.services)


@pytest.mark.parametrize(("act", "status"), [(cancel_batch, "cancelled"), (pause_batch, "paused")])
def test_nothing_is_issued_after_a_stop_has_been_answered(
    services: Services, act: Callable[[Services, int, str], object], status: str
) -> None:
    """Whatever steps are under way; they see it, or it waits for them."""
    for number in range(ROUNDS):
        sale = open_sale(services, template_id=7_100 + number, total_quantity=500, per_user_limit=1)
        campaign = plan_campaign(sale, USERS, shards=2)
        campaign.start()

        def stop(campaign: Campaign = campaign) -> int:
            while campaign.books["issued_count"] < 20:
                pass
            act(campaign.services, campaign.batch_id, "key-2")
            issued: int = campaign.books["issued_count"]
            return issued

        outcomes = at_once(lambda c=campaign: keep_working(c), stop, lambda c=campaign: keep_working(c))  # type: ignore[misc]

        assert all_returned(outcomes), outcomes
        assert (status, outcomes[1]) == (campaign.books["status"], campaign.books["issued_count"])
        assert 20 <= outcomes[1] < 120
    assert_sound(services)


def test_a_batch_that_is_paused_and_resumed_all_the_time_ends_exact(sale: Sale) -> None:
    """Ten times, amid its steps."""
    campaign = plan_campaign(sale, USERS, shards=2)
    campaign.start()

    def pause_and_resume() -> None:
        for _ in range(10):
            pause_batch(sale.services, campaign.batch_id, "key-2")
            resume_batch(sale.services, campaign.batch_id, "key-2")

    def work_on() -> None:
        while campaign.books["status"] != "done":
            keep_working(campaign, chunk=2)

    outcomes = at_once(work_on, lambda: _until_done(pause_and_resume, campaign), work_on)

    assert all_returned(outcomes), outcomes
    assert sorted(USERS) == campaign.owners()
    assert_sound(sale.services)


def _until_done(act: Callable[[], None], campaign: Campaign) -> None:
    """What can no longer be paused is done."""
    try:
        act()
    except Conflict:
        assert "done" == campaign.books["status"]


def test_users_whose_claims_are_settled_amid_the_steps_get_one_coupon_each(services: Services) -> None:
    """Limit one: the claim or the batch, whichever comes first; never both, never neither."""
    for number in range(ROUNDS):
        sale = open_sale(services, template_id=7_200 + number, total_quantity=500, per_user_limit=1)
        campaign = plan_campaign(sale, USERS, shards=2)
        sale.claim_each(USERS[::2])
        campaign.start()

        outcomes = at_once(lambda c=campaign: keep_working(c, chunk=10), lambda s=sale: _drain_all(s))  # type: ignore[misc]
        sale.drain()

        owners = Counter(sale.coupons().values())
        assert all_returned(outcomes), outcomes
        assert Counter(USERS) == owners
        assert {"LIMIT_REACHED"} >= set(sale.rejections().values())
        assert (380, 0) == (sale.stock, sale.books["reserved_quantity"])
    assert_sound(services)


def _drain_all(sale: Sale) -> None:
    while sale.queued:
        sale.drain()


def test_users_who_claim_while_they_are_given_one_get_no_second(sale: Sale) -> None:
    """Their claims are refused at once, or rejected when they are settled."""
    campaign = plan_campaign(sale, USERS, shards=2)
    campaign.start()
    answers: list[ClaimOutcome] = []

    def claim_and_settle() -> None:
        for user in reversed(USERS):
            answers.append(sale.claim(user).outcome)
            if len(answers) % 10 == 0:
                sale.drain()

    outcomes = at_once(lambda: keep_working(campaign, chunk=4), claim_and_settle)
    sale.drain()

    assert all_returned(outcomes), outcomes
    assert {ClaimOutcome.ACCEPTED, ClaimOutcome.LIMIT_REACHED} >= set(answers)
    assert Counter(USERS) == Counter(sale.coupons().values())
    assert_sound(sale.services)


def test_a_gate_that_is_rebuilt_amid_the_steps_counts_everybody_once(services: Services) -> None:
    """Limit two, so that the gate's count alone would let a second coupon through or keep it back."""
    sale = open_sale(services, total_quantity=1_000, per_user_limit=2)
    campaign = plan_campaign(sale, USERS, shards=3)
    campaign.start()

    def preheats() -> None:
        for number in count():
            if campaign.books["status"] == "done":
                return
            if number == 3:
                services.redis.flushdb()
            sale.preheat()

    outcomes = at_once(lambda: keep_working(campaign, chunk=3), preheats, lambda: keep_working(campaign, chunk=4))

    assert all_returned(outcomes), outcomes
    assert {"1"} == {str(sale.taker(user)).split()[0] for user in USERS}
    assert_sound(services)


def test_of_starts_at_once_one_sets_units_aside(services: Services) -> None:
    """The others find it running."""
    for number in range(ROUNDS):
        sale = open_sale(services, template_id=7_300 + number, total_quantity=200)
        campaign = plan_campaign(sale, USERS)

        statuses = at_once(*[campaign.start] * 4)

        assert ["running"] * 4 == statuses
        assert (120, 80) == (sale.books["reserved_quantity"], sale.stock)
    assert_sound(services)


@pytest.mark.parametrize("policy", ["all_or_nothing", "best_effort"])
def test_batches_that_are_larger_together_than_the_stock(services: Services, policy: str) -> None:
    """The second fails, or gets what the first has left; never a unit more than there is."""
    for number in range(ROUNDS):
        sale = open_sale(services, template_id=7_400 + number, total_quantity=200)
        campaigns = [plan_campaign(sale, USERS, policy=policy) for _ in range(2)]

        statuses = at_once(*[campaign.start for campaign in campaigns])

        units = sorted(campaign.books["reserved_quantity"] for campaign in campaigns)
        expected = [0, 120] if policy == "all_or_nothing" else [80, 120]
        assert expected == units
        assert sorted(["failed" if policy == "all_or_nothing" else "running", "running"]) == sorted(statuses)
        assert 200 - sum(units) == sale.stock
    assert_sound(services)


def test_a_start_amid_a_rush_takes_no_unit_twice(services: Services) -> None:
    """What is left of 150 units goes to claims or to the batch; in the end the stock is not below zero."""
    sale = open_sale(services, total_quantity=150, per_user_limit=1)
    campaign = plan_campaign(sale, USERS, policy="best_effort")

    def rush(first: int) -> list[ClaimOutcome]:
        return [sale.claim(f"c{number}").outcome for number in range(first, first + 60)]

    outcomes = at_once(lambda: rush(0), campaign.start, lambda: rush(60))
    keep_working(campaign, chunk=50)
    _drain_all(sale)

    assert all_returned(outcomes), outcomes
    books = sale.books
    assert {"SOLD_OUT"} >= set(sale.rejections().values())
    assert 150 == books["issued_quantity"] + sale.stock
    assert sale.stock >= 0
    assert_sound(services)


@pytest.fixture(autouse=True)
def nothing_waits(services: Services) -> Iterator[None]:
    """No test leaves a session that waits for another."""
    yield
    with services.engine.connect() as connection:
        waiting = connection.exec_driver_sql(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).scalar()
    assert 0 == waiting
