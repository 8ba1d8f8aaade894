"""The life of a lottery: approved, paused, ended by hand or by the clock; its stock given back, its keys forgotten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from coupon_workers.errors import Conflict
from coupon_workers.lottery.draw_front import DrawFront
from coupon_workers.lottery.draw_gate import DrawRequest
from coupon_workers.lottery.lottery_control import approve_lottery, end_lottery, pause_lottery, resume_lottery
from coupon_workers.lottery.lottery_end import close_lottery
from coupon_workers.lottery.new_lottery import create_lottery
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import preheat_lottery, settle_draws
from tests.support.lottery import OPERATOR, Fair, coupon_prize, open_lottery, plan_lottery, thanks
from tests.support.reconciling import ReconDesk
from tests.support.sale import assert_sound, open_sale


def test_what_is_left_goes_back_once(services: Services) -> None:
    """However many end it at once, and only when nothing waits."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 6)])
    fair.draw("ann")

    end_lottery(services, fair.lottery_id, OPERATOR)
    waiting = fair.books["status"], sale.books["reserved_quantity"]
    fair.drain()
    with ThreadPoolExecutor(4) as crowd:
        closed = list(crowd.map(lambda _: close_lottery(services, fair.lottery_id), range(4)))
    close_lottery(services, fair.lottery_id)

    assert ("ending", 6) == waiting
    assert sum(closed) <= 1
    assert ("ended", [0]) == (fair.books["status"], fair.prizes("left_quantity"))
    assert (1, 0, 9) == (sale.books["issued_quantity"], sale.books["reserved_quantity"], sale.stock)
    assert_sound(services)


def test_the_sweep_ends_what_is_over(services: Services) -> None:
    """Also one that was never approved or is paused; draws that wait are rung for first."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 6)])
    fair.draw("ann")
    pause_lottery(services, fair.lottery_id)
    later = replace(services, clock=lambda: utc_now() + timedelta(hours=2))

    first = Fair(later, fair.lottery_id).sweep()
    rung = settle_draws(fair.lottery_id) in services.post.sent  # type: ignore[attr-defined]  # the fixture's box
    fair.drain()
    second = Fair(later, fair.lottery_id).sweep()

    assert (0, True, 1) == (first["ended"], rung, second["ended"])
    assert "ended" == fair.books["status"]
    assert (0, 9) == (sale.books["reserved_quantity"], sale.stock)
    assert_sound(services)


def test_the_keys_of_a_lottery_go_a_week_after_its_end(services: Services) -> None:
    """Its requests are answered from the database then, and the others refused."""
    fair = open_lottery(services, [thanks()])
    drawn = fair.draw("ann")
    fair.drain()
    end_lottery(services, fair.lottery_id, OPERATOR)
    later = replace(services, clock=lambda: utc_now() + timedelta(days=8))

    forgotten = Fair(later, fair.lottery_id).sweep()["forgotten"]
    front = DrawFront(services)
    again = front.draw(DrawRequest(fair.lottery_id, "ann", "r1"))
    other = front.draw(DrawRequest(fair.lottery_id, "bob", "r1"))

    assert 1 == forgotten
    assert [] == services.redis.keys(f"cw:{{l{fair.lottery_id}}}:[^r]*")
    assert (DrawOutcome.REPLAYED, drawn.draw_id, 1, "settled") == (
        again.outcome, again.draw_id, again.prize_no, again.state,
    )  # fmt: skip
    assert DrawOutcome.ENDED == other.outcome


def test_the_sweep_warms_and_rings(services: Services) -> None:
    """A gate that is cold, a bell that was lost, a change that did not arrive."""
    fair = open_lottery(services, [thanks()])
    fair.draw("ann")
    services.redis.delete(fair.keys.bell)

    rung = fair.sweep()
    services.redis.delete(fair.keys.generation)
    preheated = fair.sweep()

    assert (1, 0) == (rung["rung"], rung["preheated"])
    assert 1 == preheated["preheated"]
    assert preheat_lottery(fair.lottery_id) in services.post.sent  # type: ignore[attr-defined]  # the fixture's box


def test_a_pause_stops_draws_at_once_and_is_idempotent(services: Services) -> None:
    """What was drawn before is settled."""
    fair = open_lottery(services, [thanks()])
    fair.draw("ann")

    pause_lottery(services, fair.lottery_id)
    pause_lottery(services, fair.lottery_id)
    paused = fair.draw("bob").outcome
    fair.drain()
    resume_lottery(services, fair.lottery_id)
    resume_lottery(services, fair.lottery_id)

    assert (DrawOutcome.PAUSED, DrawOutcome.DRAWN) == (paused, fair.draw("bob").outcome)
    assert {"ann r1": (1, None)} == fair.draws()


def test_a_lottery_above_the_budget_is_opened_by_another(services: Services) -> None:
    """Until then its units are set aside and nobody draws."""
    sale = open_sale(services, total_quantity=10)
    settings = services.settings.model_copy(update={"approval_budgets": '{"CNY": 9999}'})
    careful = replace(services, settings=type(settings)(**settings.model_dump()))
    fair = open_lottery(careful, [coupon_prize(sale.template_id, 5)])
    early = fair.draw("ann").outcome

    with pytest.raises(Conflict) as own:
        approve_lottery(careful, fair.lottery_id, OPERATOR)
    approve_lottery(careful, fair.lottery_id, "key-2")
    approve_lottery(careful, fair.lottery_id, "key-2")

    assert "OWN_LOTTERY" == own.value.code
    assert (DrawOutcome.NOT_STARTED, DrawOutcome.DRAWN) == (early, fair.draw("ann").outcome)
    assert 5 == sale.books["reserved_quantity"]


def test_random_amounts_and_templates_that_are_over_are_refused(services: Services) -> None:
    """Nothing is set aside, of no template."""
    sale = open_sale(services, total_quantity=10)
    over = open_sale(services, template_id=7_002, status="offline")
    lottery = plan_lottery(services, [coupon_prize(sale.template_id, 2, 0), coupon_prize(over.template_id, 2)])

    with pytest.raises(Conflict) as refused:
        create_lottery(services, lottery, OPERATOR)

    assert ("TEMPLATE_NOT_ACTIVE", "7002") == (refused.value.code, refused.value.evidence["template_id"])
    assert (0, 10) == (sale.books["reserved_quantity"], sale.stock)


def test_reconciliation_finds_nothing_amiss_with_lotteries(services: Services) -> None:
    """Stock, batches and state, while one runs and when it has ended."""
    sale = open_sale(services, total_quantity=30)
    for ends in (False, True):
        fair = open_lottery(services, [coupon_prize(sale.template_id, 6)])
        fair.draw_each(["ann", "bob"])
        fair.drain()
        if ends:
            end_lottery(services, fair.lottery_id, OPERATOR)
    desk = ReconDesk(services, utc_now())

    found = [desk.reconcile(kind) for kind in (ReconKind.STOCK, ReconKind.BATCHES, ReconKind.STATE)]

    assert [[], [], []] == found
    assert_sound(services)
