"""A batch from its start to its end: exact counts, limits, stock, books of both stores (DESIGN 9)."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.campaigns.batch_control import cancel_batch, pause_batch, resume_batch
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import Conflict
from coupon_workers.notify.relay import relay_outbox
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import take_offline
from tests.support.campaign import Campaign, plan_campaign
from tests.support.sale import Sale, assert_sound, open_sale

USERS = [f"u{number}" for number in range(10)]


@pytest.fixture
def sale(services: Services) -> Sale:
    """Thirty units, one a user."""
    return open_sale(services, total_quantity=30, per_user_limit=1)


def test_every_user_of_a_batch_gets_one_coupon(sale: Sale) -> None:
    """The rows add up, the stock was taken as a whole at the start, the gate counts whom it gave to."""
    campaign = plan_campaign(sale, USERS)

    started = campaign.start()
    reserved = sale.stock
    campaign.work()

    assert ("running", 20) == (started, reserved)
    assert sorted(USERS) == campaign.owners()
    books = campaign.books
    assert ("done", 10, 0, 10, 0) == (
        books["status"],
        books["issued_count"],
        books["refused_count"],
        books["reserved_quantity"],
        books["left_quantity"],
    )
    assert (10, 0, 10) == tuple(sale.books[f"{name}_quantity"] for name in ("issued", "reserved", "granted"))
    assert 20 == sale.stock
    assert ClaimOutcome.LIMIT_REACHED == sale.claim("u3").outcome
    assert_sound(sale.services)


def test_an_earlier_holder_is_refused_and_his_unit_given_back(sale: Sale) -> None:
    """By name; the unit that was set aside for him returns to the stock when the batch ends."""
    sale.claim("u3")
    sale.drain()
    campaign = plan_campaign(sale, USERS)

    campaign.start()
    campaign.work()

    assert [("u3", "LIMIT_REACHED")] == campaign.failures()
    assert (9, 1) == (campaign.books["issued_count"], campaign.books["refused_count"])
    assert 20 == sale.stock
    assert_sound(sale.services)


@pytest.mark.parametrize(
    ("policy", "status", "issued", "stock"), [("all_or_nothing", "failed", 0, 1), ("best_effort", "done", 1, 0)]
)
def test_a_batch_larger_than_the_stock_is_cut_or_refused_by_its_policy(
    services: Services, policy: str, status: str, issued: int, stock: int
) -> None:
    """CASES 3: total 100, issued 99, a batch of 50."""
    sale = open_sale(services, total_quantity=100, per_user_limit=1)
    sale.claim_each(f"early{number}" for number in range(99))
    sale.drain()
    campaign = plan_campaign(sale, [f"u{number}" for number in range(50)], policy=policy)

    campaign.start()
    campaign.work(chunk=20)

    books = campaign.books
    refused = 49 if policy == "best_effort" else 0
    assert (status, issued, refused) == (books["status"], books["issued_count"], books["refused_count"])
    assert 99 + issued == sale.books["issued_quantity"]
    assert stock == sale.stock
    assert {"SOLD_OUT"} == {reason for _, reason in campaign.failures()} or policy == "all_or_nothing"
    assert_sound(sale.services)


def test_a_message_that_comes_again_changes_nothing(sale: Sale) -> None:
    """Delivered three times, late and in any order: the cursor has moved on."""
    campaign = plan_campaign(sale, USERS)
    campaign.start()
    post = sale.services.post
    post.sent += [task for task in post.sent if task.name == "issue_shard"] * 2  # type: ignore[attr-defined]

    campaign.work()

    assert sorted(USERS) == campaign.owners()
    assert "done" == campaign.books["status"]
    assert_sound(sale.services)


def test_a_paused_batch_stands_still_and_goes_on_where_it_was(sale: Sale) -> None:
    """No step commits while it is paused."""
    campaign = plan_campaign(sale, USERS)
    campaign.start()
    campaign.work(most=1)

    pause_batch(sale.services, campaign.batch_id, "key-2")
    campaign.work()
    paused = campaign.books
    sale.preheat()
    resume_batch(sale.services, campaign.batch_id, "key-2")
    campaign.work()

    assert ("paused", 3) == (paused["status"], paused["issued_count"])
    assert ("done", 10) == (campaign.books["status"], campaign.books["issued_count"])
    assert_sound(sale.services)


def test_a_cancelled_batch_keeps_what_it_gave_and_gives_back_the_rest(sale: Sale) -> None:
    """Once, however often it is cancelled; it cannot be resumed."""
    campaign = plan_campaign(sale, USERS)
    campaign.start()
    campaign.work(most=2)

    for _ in range(2):
        cancel_batch(sale.services, campaign.batch_id, "key-2")
    campaign.work()

    books = campaign.books
    assert ("cancelled", 6, 0) == (books["status"], books["issued_count"], books["left_quantity"])
    assert (6, 0, 24) == (sale.books["issued_quantity"], sale.books["reserved_quantity"], sale.stock)
    with pytest.raises(Conflict):
        resume_batch(sale.services, campaign.batch_id, "key-2")
    assert_sound(sale.services)


def test_a_gate_that_lost_its_memory_is_rebuilt_in_the_midst_of_a_batch(sale: Sale) -> None:
    """The preheat counts what was issued; the steps after it count the rest once."""
    campaign = plan_campaign(sale, USERS)
    campaign.start()
    campaign.work(most=2)
    sale.services.redis.flushall()
    campaign.work(most=1)

    sale.preheat()
    campaign.work()

    assert "done" == campaign.books["status"]
    assert sorted(USERS) == campaign.owners()
    assert_sound(sale.services)


def test_two_batches_take_turns(services: Services) -> None:
    """A small batch behind a large one is through long before it."""
    sale = open_sale(services, total_quantity=1_000)
    large = plan_campaign(sale, [f"a{number}" for number in range(120)], shards=4)
    small = plan_campaign(sale, [f"b{number}" for number in range(6)], shards=1)
    large.start()
    small.start()

    Campaign(sale, small.batch_id).work(most=12)

    assert ("done", "running") == (small.books["status"], large.books["status"])
    assert large.books["issued_count"] < 60


def test_whoever_listens_hears_that_a_batch_is_finished(sale: Sale) -> None:
    """Once, behind the coupons; the event is of a batch, and names no user and no coupon."""
    services = sale.services
    with services.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO webhook (webhook_id, url, secret, events, created_by, created_at)"
                " VALUES (1, 'https://shop.example/hooks', 'whsec_MfKQ9r8GKYqrTwjUPD8I', '{}', 'key-1', :now)"
            ),
            {"now": services.clock()},
        )
    campaign = plan_campaign(sale, USERS)
    campaign.start()
    campaign.work()

    relay_outbox(services)

    told = sale.rows("SELECT event, payload FROM delivery ORDER BY delivery_id")
    assert ["coupon.issued"] * 10 + ["batch.finished"] == [event for event, _ in told]
    assert {
        "template_id": str(sale.template_id),
        "batch_no": str(campaign.batch_id),
        "status": "done",
        "issued": 10,
        "refused": 0,
    } == told[-1][1]


def test_a_cancelled_batch_that_is_cancelled_again_is_told_once(sale: Sale) -> None:
    """Its end stays the first one, with its instant and what it gave back."""
    campaign = plan_campaign(sale, USERS)
    campaign.start()
    cancel_batch(sale.services, campaign.batch_id, "key-2")
    ended = dict(campaign.books)

    cancel_batch(sale.services, campaign.batch_id, "key-3")

    assert [(1,)] == sale.rows("SELECT count(*) FROM outbox WHERE event = 'batch.finished'")
    assert ended == dict(campaign.books)
    assert_sound(sale.services)


def test_a_batch_of_a_template_that_went_offline_is_paused(sale: Sale) -> None:
    """By the sweep, with the reason; what is left can be cancelled."""
    campaign = plan_campaign(sale, USERS)
    campaign.start()
    campaign.work(most=1)
    take_offline(sale.services, sale.template_id)

    campaign.work()
    campaign.sweep()

    assert ("paused", "the template is offline", 3) == tuple(
        campaign.books[name] for name in ("status", "reason", "issued_count")
    )
    cancel_batch(sale.services, campaign.batch_id, "key-2")
    assert 0 == sale.books["reserved_quantity"]
    assert_sound(sale.services)


def test_a_claim_that_a_campaign_overtakes_does_not_have_the_gate_rebuilt(sale: Sale) -> None:
    """It is rejected by its user's limit; the gate has lost nothing, and counts the campaign's coupon."""
    sale.claim("u3")
    campaign = plan_campaign(sale, USERS)
    campaign.start()
    campaign.work(most=2)

    sale.drain()

    post: Any = sale.services.post
    assert {"LIMIT_REACHED"} == set(sale.rejections().values())
    assert [] == [task for task in post.sent if task.name == "preheat_template"]
    campaign.work()
    assert_sound(sale.services)
