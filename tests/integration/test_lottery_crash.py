"""A worker dies at each point of settling draws, and a preheat at its own; another one does the rest."""

from __future__ import annotations

import pytest

from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.services import Services
from tests.support.crash import dies_at
from tests.support.lottery import coupon_prize, open_lottery
from tests.support.sale import assert_sound, open_sale

POINTS = ("before_insert", "after_insert", "after_commit", "after_acknowledge")


@pytest.mark.parametrize("point", POINTS)
def test_a_drain_that_dies_is_done_by_the_next(services: Services, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """One coupon a draw, one unit a coupon, no draw lost; and a rebuild in between changes nothing."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 3)])
    drawn = fair.draw_each(["ann", "bob", "cid", "dan"])

    with dies_at(monkeypatch, f"lottery.{point}"):
        fair.drain()
    fair.preheat()
    fair.drain()
    fair.drain()

    assert {f"{user} r1": (decision.prize_no, None) for user, decision in zip("abcd", drawn, strict=True)} == {
        f"{request[0]} r1": how for request, how in fair.draws().items()
    }
    assert {decision.draw_id for decision in drawn if decision.prize_no} == set(sale.coupons())
    assert ([0], 0, 0) == (fair.stock, fair.queued, sale.books["reserved_quantity"])
    assert_sound(services)


def test_a_preheat_that_dies_leaves_the_gate_as_it_was(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next one builds it."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 3)])
    fair.draw("ann")
    fair.drain()
    before = fair.gate()

    with dies_at(monkeypatch, "lottery.before_swap"):
        fair.preheat()

    assert before == fair.gate()
    assert 1 == fair.preheat()
    assert before == fair.gate()


def test_a_front_that_dies_before_its_answer_has_drawn(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's own retry is told the prize."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 3)])

    with dies_at(monkeypatch, "lottery.after_script"):
        fair.draw("ann")
    again = fair.draw("ann")
    fair.drain()

    assert (DrawOutcome.REPLAYED, 1) == (again.outcome, again.prize_no)
    assert {again.draw_id: "ann"} == sale.coupons()
    assert_sound(services)
