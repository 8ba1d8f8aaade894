"""Limits and stock of a batch: earlier holders, days, received coupons, units that refusals leave to others."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from coupon_workers.campaigns.batch_control import cancel_batch, resume_batch
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import pause_template, resume_template
from tests.support.campaign import Campaign, plan_campaign
from tests.support.gift import give
from tests.support.sale import Sale, assert_sound, open_sale

USERS = [f"u{number}" for number in range(6)]
CAMPAIGN_USERS = [f"u{number}" for number in range(998)]


def ran(campaign: Campaign, *, chunk: int = 2) -> tuple[str, int, int]:
    """Start it and work until nothing is left: status, issued, refused."""
    campaign.start()
    campaign.work(chunk=chunk)
    books = campaign.books
    return books["status"], books["issued_count"], books["refused_count"]


def test_a_second_batch_of_a_template_gives_up_to_the_limit(services: Services) -> None:
    """Two a user, three batches: the third finds everybody full, and its units go back."""
    sale = open_sale(services, total_quantity=30, per_user_limit=2)

    results = [ran(plan_campaign(sale, USERS)) for _ in range(3)]

    assert [("done", 6, 0), ("done", 6, 0), ("done", 0, 6)] == results
    assert (12, 0, 18) == (sale.books["issued_quantity"], sale.books["reserved_quantity"], sale.stock)
    assert_sound(services)


def test_a_claim_that_is_queued_when_a_batch_takes_its_users_allowance_is_rejected(services: Services) -> None:
    """The batch came first to the database; the claim's unit comes back."""
    sale = open_sale(services, total_quantity=30, per_user_limit=1)
    queued = sale.claim("u3").claim_id

    result = ran(plan_campaign(sale, USERS))
    sale.drain()

    assert ("done", 6, 0) == result
    assert {queued: "LIMIT_REACHED"} == sale.rejections()
    assert 24 == sale.stock
    assert_sound(services)


def test_a_received_coupon_takes_nothing_of_the_allowance_and_a_given_one_does(services: Services) -> None:
    """u0 gave his to u1: the batch has one for u1, none for u0."""
    sale = open_sale(services, total_quantity=30, per_user_limit=1, transferable=True)
    coupon_id = sale.claim("u0").claim_id
    sale.drain()
    give(services, "u0", coupon_id, "u1")
    campaign = plan_campaign(sale, USERS)

    result = ran(campaign)

    assert ("done", 5, 1) == result
    assert [("u0", "LIMIT_REACHED")] == campaign.failures()
    assert "u1" in campaign.owners()
    assert_sound(services)


def test_a_limit_of_the_day_holds_and_begins_anew_at_the_templates_midnight(services: Services) -> None:
    """One a day; the batch of the next local day finds everybody free again."""
    # 15:59 UTC is a minute before midnight in Shanghai.
    before_midnight = datetime.now(UTC).replace(hour=15, minute=59, second=0, microsecond=0)
    open_for = {"claim_start": before_midnight - timedelta(days=3), "claim_end": before_midnight + timedelta(days=3)}
    late = replace(services, clock=lambda: before_midnight)
    sale = open_sale(late, total_quantity=30, per_user_daily_limit=1, **open_for)

    first = ran(plan_campaign(sale, USERS[:4]))
    second = plan_campaign(sale, USERS)
    same_day = ran(second)
    next_day = Sale(
        replace(services, clock=lambda: before_midnight + timedelta(minutes=2)), sale.template_id, sale.gate
    )
    after_midnight = ran(plan_campaign(next_day, USERS))

    assert [("done", 4, 0), ("done", 2, 4), ("done", 6, 0)] == [first, same_day, after_midnight]
    assert {"DAILY_LIMIT_REACHED"} == {reason for _, reason in second.failures()}
    assert_sound(next_day.services)


def test_a_day_of_limits_is_the_templates_and_not_utcs(services: Services) -> None:
    """Half past midnight and nine in the morning in Shanghai: one local day, and two dates of UTC."""
    night = datetime.now(UTC).replace(hour=16, minute=30, second=0, microsecond=0)
    open_for = {"claim_start": night - timedelta(days=3), "claim_end": night + timedelta(days=3)}
    sale = open_sale(replace(services, clock=lambda: night), total_quantity=30, per_user_daily_limit=1, **open_for)
    ran(plan_campaign(sale, USERS[:4]))
    morning = replace(services, clock=lambda: night + timedelta(hours=8, minutes=30))

    result = ran(plan_campaign(Sale(morning, sale.template_id, sale.gate), USERS))

    assert ("done", 2, 4) == result
    assert_sound(morning)


def test_the_gate_counts_a_batch_towards_the_day(services: Services) -> None:
    """Who was given one today cannot claim another today."""
    sale = open_sale(services, total_quantity=30, per_user_daily_limit=1)

    ran(plan_campaign(sale, USERS))

    assert ClaimOutcome.DAILY_LIMIT_REACHED == sale.claim("u3").outcome
    sale.preheat()
    assert ClaimOutcome.DAILY_LIMIT_REACHED == sale.claim("u3").outcome
    assert_sound(services)


def test_a_unit_that_a_refused_user_leaves_goes_to_a_later_one(services: Services) -> None:
    """Three units for six users, of whom the first two have one already: the next three get them, the last none."""
    sale = open_sale(services, total_quantity=5, per_user_limit=1)
    sale.claim_each(USERS[:2])
    sale.drain()
    campaign = plan_campaign(sale, USERS, shards=1, policy="best_effort")

    result = ran(campaign)

    assert ("done", 3, 3) == result
    assert ["u2", "u3", "u4"] == campaign.owners()
    assert [("u0", "LIMIT_REACHED"), ("u1", "LIMIT_REACHED"), ("u5", "SOLD_OUT")] == campaign.failures()
    assert (0, 0) == (sale.stock, sale.books["reserved_quantity"])
    assert_sound(services)


def test_the_limit_is_named_before_the_end_of_the_stock(services: Services) -> None:
    """Who could not have one anyway is not told that he came too late."""
    sale = open_sale(services, total_quantity=3, per_user_limit=1)
    sale.claim_each(["u5"])
    sale.drain()
    campaign = plan_campaign(sale, USERS, shards=1, policy="best_effort")

    ran(campaign)

    assert [("u2", "SOLD_OUT"), ("u3", "SOLD_OUT"), ("u4", "SOLD_OUT"), ("u5", "LIMIT_REACHED")] == campaign.failures()
    assert_sound(services)


def test_units_of_queued_claims_are_not_set_aside(services: Services) -> None:
    """Seven units, three accepted and not settled yet: a batch of six gets four, and the claims their three."""
    sale = open_sale(services, total_quantity=7, per_user_limit=1)
    claim_ids = sale.claim_each(["a", "b", "c"])

    result = ran(plan_campaign(sale, USERS, policy="best_effort"))
    sale.drain()

    assert ("done", 4, 2) == result
    assert set(claim_ids) <= sale.coupons().keys()
    assert (0, {}) == (sale.stock, sale.rejections())
    assert_sound(services)


def test_a_shard_of_a_thousand_rows_with_three_equal_users(services: Services) -> None:
    """CASES 31: 998 issued, 2 duplicates, 998 units; the rows add up."""
    sale = open_sale(services, total_quantity=1_000, per_user_limit=1)
    campaign = plan_campaign(sale, CAMPAIGN_USERS, shards=1, row_count=1_000, duplicate_count=2)

    result = ran(campaign, chunk=300)

    assert ("done", 998, 0) == result
    assert (998, 2) == (sale.books["issued_quantity"], sale.stock)
    assert_sound(services)


@pytest.mark.parametrize("end", ["resumed", "cancelled"])
def test_a_template_that_is_paused_stops_its_batch(services: Services, end: str) -> None:
    """Its steps give nothing; the sweep goes on when it is resumed, and a cancel gives its units back at once."""
    sale = open_sale(services, total_quantity=30)
    campaign = plan_campaign(sale, USERS)
    campaign.start()
    campaign.work(chunk=2, most=1)
    pause_template(services, sale.template_id)
    campaign.work()
    issued = campaign.books["issued_count"]

    if end == "cancelled":
        cancel_batch(services, campaign.batch_id, "key-2")
        resume_template(services, sale.template_id)
    else:
        resume_template(services, sale.template_id)
        resume_batch(services, campaign.batch_id, "key-2")
        campaign.work()

    expected = (2, 28) if end == "cancelled" else (6, 24)
    assert 2 == issued
    assert expected == (campaign.books["issued_count"], sale.stock)
    assert_sound(services)
