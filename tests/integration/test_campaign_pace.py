"""A batch beside claims: its steps keep to a pace, wait in the broker, and all come (DESIGN 14)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from coupon_workers.campaigns.batch_run import run_step
from coupon_workers.campaigns.batch_sweep import FORGOTTEN, sweep_batches
from coupon_workers.campaigns.shard_pace import CHUNK_BESIDE_CLAIMS
from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.runtime.pace import MANY, Lane, line_ms, note_claims
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import RESERVED, Task
from tests.conftest import PostBox
from tests.support.campaign import Campaign, plan_campaign
from tests.support.sale import Sale, assert_sound, open_sale

PEOPLE = CHUNK_BESIDE_CLAIMS + 500
STEP_MS = 200
"""What a step of a thousand users takes at the rate."""


@pytest.fixture
def sale(services: Services) -> Sale:
    """Enough for all; its clock stands, so that a second of many claims does not pass."""
    now = services.clock()
    return open_sale(replace(services, clock=lambda: now), total_quantity=2 * PEOPLE, per_user_limit=1)


@pytest.fixture
def campaign(sale: Sale) -> Campaign:
    """A batch of one shard that is to be started."""
    return plan_campaign(sale, [f"u{number}" for number in range(PEOPLE)], shards=1)


def steps(post: PostBox) -> list[Task]:
    """Steps that were sent."""
    return [task for task in post.sent if task.name == "issue_shard"]


def take(campaign: Campaign, task: Task) -> None:
    """Do what the actor does with the message."""
    run_step(campaign.sale.services, *task.args)  # type: ignore[arg-type]  # a message has numbers and words


def test_a_step_that_has_no_place_in_the_line_takes_one_first(campaign: Campaign, post: PostBox, sale: Sale) -> None:
    """It was sent when no claims came: nothing is issued, and it comes again in its turn."""
    campaign.start()
    [sent] = steps(post)
    note_claims(sale.services, MANY)
    post.sent.clear()

    take(campaign, sent)

    assert 0 == campaign.books["issued_count"]
    assert [((*sent.args, RESERVED), 0)] == [(task.args, task.delay_ms) for task in steps(post)]


def test_beside_claims_steps_are_smaller_and_come_one_after_the_other(
    campaign: Campaign, post: PostBox, sale: Sale
) -> None:
    """A thousand users a step; the next one waits for what this one takes at the rate."""
    note_claims(sale.services, MANY)
    campaign.start()
    [sent] = steps(post)
    post.sent.clear()
    note_claims(sale.services, MANY)  # what was noted counts for a second or two: the start may have taken longer

    take(campaign, sent)

    [following] = steps(post)
    assert CHUNK_BESIDE_CLAIMS == campaign.books["issued_count"]
    assert 0 < following.delay_ms <= STEP_MS
    take(campaign, following)
    assert ("done", PEOPLE) == (campaign.books["status"], campaign.books["issued_count"])
    assert_sound(sale.services)


def test_shards_of_a_batch_that_starts_beside_claims_are_spread(sale: Sale, post: PostBox) -> None:
    """Each by its own users: a small batch is soon through the line."""
    note_claims(sale.services, MANY)
    campaign = plan_campaign(sale, [f"u{number}" for number in range(PEOPLE)], shards=3)

    campaign.start()

    delays = [task.delay_ms for task in steps(post)]
    assert (3, 0) == (len(delays), delays[0])
    assert delays == sorted(delays)
    assert line_ms(sale.services.redis, Lane.CAMPAIGN) <= PEOPLE / 5


def test_steps_are_not_late_while_the_line_is_as_long(campaign: Campaign, post: PostBox, sale: Sale) -> None:
    """The sweep would send each a second time, and a third."""
    note_claims(sale.services, MANY)
    campaign.start()
    post.sent.clear()
    sale.services.redis.set("{pace}:campaign", "1", px=60_000)
    now = sale.services.clock()

    def woken(passed: timedelta) -> int:
        later = replace(sale.services, clock=lambda: now + passed)
        return sweep_batches(later)["woken"]

    waits = woken(FORGOTTEN + timedelta(seconds=30))
    sale.services.redis.delete("{pace}:campaign")
    late = woken(FORGOTTEN + timedelta(seconds=30))

    assert (0, 1) == (waits, late)


def test_the_expiry_sweep_takes_places_too(sale: Sale) -> None:
    """And ends every coupon all the same."""
    sale.claim_each(f"u{number}" for number in range(MANY))
    sale.drain()
    [(end,)] = sale.rows("SELECT max(valid_to) FROM coupon")

    ended = expire_coupons(sale.services, end)

    assert MANY == ended
    assert 0 < line_ms(sale.services.redis, Lane.EXPIRY) <= 400
