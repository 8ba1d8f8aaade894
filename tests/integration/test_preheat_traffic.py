"""Preheating a template that is being claimed and settled: nobody notices, and nothing is lost (DESIGN 6)."""

from __future__ import annotations

from collections import Counter

import pytest

from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_change import patch_template
from coupon_workers.templates.template_desk import pause_template, resume_template
from tests.support.sale import assert_sound, open_sale
from tests.support.traffic import CLAIMERS, amid_traffic, assert_every_accepted_claim_ended


@pytest.mark.parametrize("total", [150, 1_000])
def test_a_preheat_under_traffic_changes_no_answer(services: Services, total: int) -> None:
    """With more claims than units, and with more units than claims: as many are accepted as without it."""
    sale = open_sale(services, total_quantity=total, per_user_limit=2, per_user_daily_limit=2)

    answers = amid_traffic(sale, sale.preheat)

    outcomes = Counter(outcome for _, outcome in answers)
    allowed = CLAIMERS * 40 * 2
    assert min(total, allowed) == outcomes[ClaimOutcome.ACCEPTED]
    assert 0 == outcomes[ClaimOutcome.NOT_WARMED]
    assert {} == sale.rejections()
    assert_every_accepted_claim_ended(sale, answers)


def test_pauses_changes_of_the_total_and_preheats_under_traffic_lose_nothing(services: Services) -> None:
    """The rows and the stock sum to the total that holds at the end."""
    sale = open_sale(services, total_quantity=200)
    totals = iter(range(201, 100_000))

    def disturb() -> None:
        pause_template(services, sale.template_id)
        sale.preheat()
        resume_template(services, sale.template_id)
        patch_template(services, sale.template_id, {"total_quantity": next(totals)})
        sale.preheat()

    answers = amid_traffic(sale, disturb)

    assert sale.books["total_quantity"] == sale.stock + len(sale.coupons())
    assert {"PAUSED"} >= set(sale.rejections().values())
    assert_every_accepted_claim_ended(sale, answers)


def test_redis_emptied_under_traffic_and_rebuilt_keeps_every_invariant(services: Services) -> None:
    """Claims are lost with it, as they must be; what the database has is right, and nobody is over his limit."""
    sale = open_sale(services, total_quantity=150, per_user_limit=2)

    def lose_and_rebuild() -> None:
        services.redis.flushdb()
        sale.preheat()

    answers = amid_traffic(sale, lose_and_rebuild)
    sale.preheat()

    accepted = {claim_id for claim_id, outcome in answers if outcome is ClaimOutcome.ACCEPTED}
    assert sale.coupons().keys() | sale.rejections().keys() <= accepted
    assert sale.stock + len(sale.coupons()) == 150
    assert_sound(services)
