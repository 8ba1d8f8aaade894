"""Steps of a batch one by one: what they write, whom they wait for, and messages that come out of turn."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text

from coupon_workers.campaigns import batch_sweep, shard_step
from coupon_workers.campaigns.batch_control import approve_batch, cancel_batch, pause_batch
from coupon_workers.campaigns.batch_run import run_step
from coupon_workers.campaigns.batch_sweep import FORGOTTEN, sweep_batches
from coupon_workers.claiming import turn
from coupon_workers.claiming.turn import settle_lock
from coupon_workers.errors import Conflict, StoreUnavailable
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import pause_template, resume_template
from coupon_workers.templates.validity_batch import windows_ms
from tests.support.campaign import Campaign, plan_campaign
from tests.support.campaign_crash import dying_at
from tests.support.notify_bureau import Bureau
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.workshop import eventually

USERS = [f"u{number}" for number in range(8)]
PATIENCE_S = 30
LATER = timedelta(hours=1)


@pytest.fixture
def sale(services: Services) -> Sale:
    """Thirty units, one a user."""
    return open_sale(services, total_quantity=30, per_user_limit=1)


@pytest.fixture
def campaign(sale: Sale) -> Campaign:
    """A batch that runs, in one shard."""
    campaign = plan_campaign(sale, USERS, shards=1)
    campaign.start()
    return campaign


def step(campaign: Campaign, cursor: int = 0, *, chunk: int = 3, services: Services | None = None) -> None:
    """One message of its shard."""
    run_step(services or campaign.services, campaign.batch_id, 0, cursor, chunk=chunk)


def sessions_waiting(engine: Engine) -> int:
    """How many wait for a lock."""
    with engine.connect() as connection:
        found = connection.scalar(
            text(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
        )
        return int(found or 0)


def test_a_coupon_of_a_batch_says_whose_it_is_and_of_what(campaign: Campaign) -> None:
    """Its batch, its source, a history of one row; nobody listens, so nothing is passed on."""
    step(campaign, chunk=1)

    number = str(campaign.batch_id)
    sale = campaign.sale
    [(user, *columns)] = sale.rows("SELECT user_id, batch_no, source, claim_seq, status, version FROM coupon")
    assert [number, "batch", 1, "unused", 1] == columns
    assert [("issue", None, "unused", "batch", number)] == sale.rows(
        f"SELECT action, from_status, to_status, operator, request_id FROM coupon_flow WHERE user_id = '{user}'"
    )
    assert [] == sale.rows("SELECT 1 FROM outbox")
    assert [(True,)] == sale.rows("SELECT valid_to - valid_from > interval '6 days' FROM coupon")


def test_a_shop_that_listens_is_told_of_each_coupon(campaign: Campaign) -> None:
    """One event a coupon, with the coupon's own time."""
    Bureau(campaign.services).webhook("http://127.0.0.1:9/hook")

    step(campaign)

    told = campaign.sale.rows("SELECT o.event, o.coupon_id = c.coupon_id FROM outbox o JOIN coupon c USING (user_id)")
    assert [("coupon.issued", True)] * 3 == told


@pytest.mark.parametrize(("shard", "cursor"), [(0, 3), (0, 8), (0, 99), (7, 0)])
def test_a_message_that_fits_nothing_is_dropped(campaign: Campaign, shard: int, cursor: int) -> None:
    """A member the shard has not come to, one beyond its end, a shard that is none; nor a batch that is none."""
    run_step(campaign.services, campaign.batch_id, shard, cursor)
    run_step(campaign.services, 4711, 0, 0)

    assert ("running", 0) == (campaign.books["status"], campaign.books["issued_count"])
    assert_sound(campaign.services)


def test_settling_waits_for_a_step_and_then_settles(campaign: Campaign) -> None:
    """Instead of leaving its claims to a bell that has rung already."""
    sale = campaign.sale
    sale.claim("stranger")
    engine = sale.services.engine

    with ThreadPoolExecutor(1) as threads:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": settle_lock(sale.template_id, 0)})
            settled = threads.submit(sale.drain)
            assert eventually(lambda: sessions_waiting(engine) == 1)
        assert 1 == settled.result(PATIENCE_S)

    assert ["stranger"] == list(sale.coupons().values())
    assert_sound(sale.services)


@pytest.mark.parametrize(("act", "status"), [(cancel_batch, "cancelled"), (pause_batch, "paused")])
def test_a_stop_that_comes_amid_a_step_waits_for_it(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, act: Callable[[Services, int, str], object], status: str
) -> None:
    """The step has read what is left of the units: they are not given back under its hands."""
    services = campaign.services
    with ThreadPoolExecutor(1) as threads:
        stops: list[Future[object]] = []

        def stop_first(*arguments: Any) -> Any:
            stops.append(threads.submit(act, services, campaign.batch_id, "key-2"))
            assert eventually(lambda: sessions_waiting(services.engine) == 1 or stops[0].done())
            return windows_ms(*arguments)

        monkeypatch.setattr(shard_step, "windows_ms", stop_first)
        step(campaign)
        stops[0].result(PATIENCE_S)

    books = campaign.books
    expected = (status, 3, 5 if status == "paused" else 0)
    assert expected == (books["status"], books["issued_count"], books["left_quantity"])
    assert_sound(services)


def test_a_step_that_waits_too_long_for_its_turn_is_left_to_the_sweep(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A preheat of millions has the template: nothing is written, no session is kept waiting."""
    monkeypatch.setattr(turn, "TURN_WAIT_MS", 50)
    sale = campaign.sale
    with sale.services.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": settle_lock(sale.template_id, 0)})
        step(campaign)
    waited = campaign.books["issued_count"]
    late = replace(sale.services, clock=lambda: utc_now() + FORGOTTEN * 2)

    woken = sweep_batches(late)["woken"]
    campaign.work()

    assert (0, 1, 8) == (waited, woken, campaign.books["issued_count"])
    assert_sound(sale.services)


def test_a_step_whose_gate_is_away_is_counted_by_the_next(campaign: Campaign) -> None:
    """Its coupons are there; the message for the next step is not sent, and comes with the sweep."""
    away = client_without_retries("redis://127.0.0.1:1", 1_000)
    without = replace(campaign.services, redis=away)
    with pytest.raises(StoreUnavailable):
        step(campaign, services=without)
    issued = campaign.books["issued_count"]

    step(campaign, cursor=3)
    step(campaign, cursor=6)

    assert (3, 8) == (issued, campaign.books["issued_count"])
    assert {"1"} == {str(campaign.sale.taker(user)).split()[0] for user in USERS}
    assert_sound(campaign.services)


def test_steps_of_two_days_are_counted_by_their_days(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first died before midnight, and the next, after it, counts for both."""
    midnight = datetime.now(UTC).replace(hour=16, minute=0, second=0, microsecond=0)  # in Shanghai
    before, after = (replace(services, clock=lambda at=at: midnight + at) for at in (-FORGOTTEN, FORGOTTEN))  # type: ignore[misc]
    window = {"claim_start": midnight - LATER * 80, "claim_end": midnight + LATER * 80}
    sale = open_sale(before, total_quantity=30, per_user_daily_limit=2, **window)
    campaign = plan_campaign(sale, USERS, shards=1)
    campaign.start()
    with dying_at(monkeypatch, "campaign.after_commit"):
        step(campaign, chunk=5)

    step(campaign, cursor=5, services=after)

    found: Any = services.redis.keys(f"{sale.keys.day_prefix}*")
    days = sorted(found)
    assert [5, 3] == [services.redis.hlen(day) for day in days]
    assert_sound(after)


def test_a_batch_begins_at_its_time_and_not_before(sale: Sale) -> None:
    """By the sweep; a start before it changes nothing."""
    campaign = plan_campaign(sale, USERS, start_at=utc_now() + LATER)
    early = campaign.start()
    swept = campaign.sweep()["started"]

    late = sweep_batches(replace(sale.services, clock=lambda: utc_now() + LATER + FORGOTTEN))["started"]

    assert ("ready", 0, 1, "running") == (early, swept, late, campaign.books["status"])


def test_a_batch_that_needs_a_second_person_waits_for_one(sale: Sale) -> None:
    """Whoever made it is none; approved twice is approved once."""
    campaign = plan_campaign(sale, USERS, needs_approval=True)
    waits = [campaign.start(), campaign.sweep()["started"]]
    with pytest.raises(Conflict) as refused:
        approve_batch(sale.services, campaign.batch_id, "key-1")

    for operator in ("key-2", "key-3"):
        approve_batch(sale.services, campaign.batch_id, operator)

    assert (["ready", 0], "OWN_BATCH") == (waits, refused.value.code)
    assert ("running", "key-2") == (campaign.start(), campaign.books["approved_by"])


def test_batches_that_wait_do_not_keep_the_sweep_from_others(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaigns of a whole year may be planned ahead, and more wait for approval."""
    monkeypatch.setattr(batch_sweep, "AT_ONCE", 2)
    for _ in range(2):
        plan_campaign(sale, USERS[:1], start_at=utc_now() + LATER)
        plan_campaign(sale, USERS[:1], needs_approval=True)
    due = plan_campaign(sale, USERS)

    assert 1 == due.sweep()["started"]


def test_batches_that_stand_still_do_not_keep_the_sweep_from_others(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a template that was paused take no turns until it goes on: then they are woken."""
    monkeypatch.setattr(batch_sweep, "AT_ONCE", 2)
    paused, other = (open_sale(services, template_id=number, total_quantity=30) for number in (7_001, 7_002))
    standing = [plan_campaign(paused, USERS[:1]) for _ in range(2)]
    for campaign in standing:
        campaign.start()
    pause_template(services, paused.template_id)
    due = plan_campaign(other, USERS)

    started = due.sweep()["started"]
    resume_template(services, paused.template_id)
    woken = sweep_batches(replace(services, clock=lambda: utc_now() + FORGOTTEN))["woken"]

    assert (1, 2) == (started, woken)


def test_a_batch_that_breaks_does_not_keep_the_sweep_from_others(sale: Sale) -> None:
    """Its books contradict one another, and a person has to look."""
    broken, due = plan_campaign(sale, USERS), plan_campaign(sale, USERS)
    with sale.services.engine.begin() as connection:
        connection.execute(text("UPDATE issue_batch SET template_id = 1 WHERE batch_id = :id"), {"id": broken.batch_id})

    assert 1 == due.sweep()["started"]


def test_a_batch_that_was_paused_before_its_start_is_ready_when_resumed(sale: Sale) -> None:
    """Its units are not set aside before it starts."""
    campaign = plan_campaign(sale, USERS)
    pause_batch(sale.services, campaign.batch_id, "key-2")

    paused = (campaign.start(), campaign.sweep()["started"], sale.stock)

    assert ("paused", 0, 30) == paused
    assert_sound(sale.services)


@pytest.mark.parametrize("status", ["paused", "offline"])
def test_a_batch_of_a_template_that_is_not_on_sale_fails(services: Services, status: str) -> None:
    """By name, and nothing is set aside."""
    sale = open_sale(services, total_quantity=30, status=status)
    campaign = plan_campaign(sale, USERS)

    assert "failed" == campaign.start()

    assert f"TEMPLATE_NOT_ACTIVE: the template is {status}" == campaign.books["reason"]
    assert 0 == sale.books["reserved_quantity"]
    assert_sound(services)
