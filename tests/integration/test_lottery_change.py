"""A lottery is changed while nobody draws: units follow its stock, the gate its books, and nobody undoes another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from coupon_workers.errors import Conflict, InvalidInput, StoreUnavailable
from coupon_workers.lottery.lottery_change import LotteryChange, PrizeChange, change_lottery
from coupon_workers.lottery.lottery_control import end_lottery, resume_lottery
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from tests.support.crash import dies_at
from tests.support.lottery import FIRST, OPERATOR, Fair, coupon_prize, open_lottery, thanks
from tests.support.sale import Sale, assert_sound, open_sale


def _change(fair: Fair, *prizes: PrizeChange, name: str | None = None, version: int | None = None) -> None:
    change = LotteryChange(version or fair.books["version"], name, prizes)
    change_lottery(fair.services, fair.lottery_id, change)


def _paused(services: Services, stock: int = 4, total: int = 10) -> tuple[Sale, Fair]:
    """A lottery of coupons of which half the draws win one, that is paused."""
    sale = open_sale(services, total_quantity=total)
    fair = open_lottery(services, [coupon_prize(sale.template_id, stock, 500_000), thanks(500_000)])
    fair.pause()
    return sale, fair


def test_stock_and_odds_change_and_draws_go_on(services: Services) -> None:
    """More units are set aside, then some given back; the gate has what the books have, and new odds hold."""
    sale, fair = _paused(services)

    _change(fair, PrizeChange(1, stock=9))
    assert ([9, 1_000_000], 9) == (fair.stock, sale.books["reserved_quantity"])
    _change(fair, PrizeChange(1, 1_000_000, 2), PrizeChange(2, weight=0), name="Another wheel")
    resume_lottery(services, fair.lottery_id)

    assert ([2, 1_000_000], 2) == (fair.stock, sale.books["reserved_quantity"])
    assert 1 == fair.draw(number=999_999).prize_no
    assert ("Another wheel", [1_000_000, 0]) == (fair.books["name"], fair.prizes("weight"))
    fair.drain()
    assert_sound(services)


def test_stock_never_falls_below_what_is_drawn(services: Services) -> None:
    """Settled or still queued; a refusal changes nothing, and the gate is warm again."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 4)])
    fair.draw_each(["ann", "ben"])
    fair.drain()
    fair.draw("cleo", number=FIRST)
    fair.pause()
    before = fair.gate()

    for stock in (1, 2):
        with pytest.raises(Conflict) as refused:
            _change(fair, PrizeChange(1, stock=stock))
        assert ("BELOW_DRAWN", 3 if stock == 2 else 2) == (refused.value.code, refused.value.evidence["drawn"])
    assert before == fair.gate()
    _change(fair, PrizeChange(1, stock=3))

    assert [0] == fair.stock
    fair.drain()
    assert (3, 0) == (sum(fair.coupons().values()), sale.books["reserved_quantity"])
    assert_sound(services)


@pytest.mark.parametrize(
    ("prizes", "expected"),
    [
        ([PrizeChange(1, weight=500_001)], "prizes"),
        ([PrizeChange(1, weight=0)], "prizes"),
        ([PrizeChange(3, stock=1)], "prizes.0.prize_no"),
        ([PrizeChange(1, stock=5), PrizeChange(1, stock=6)], "prizes"),
    ],
)
def test_what_does_not_add_up_is_refused(services: Services, prizes: list[PrizeChange], expected: str) -> None:
    """As a whole: nothing of it is done."""
    _, fair = _paused(services)
    before = fair.books

    with pytest.raises(InvalidInput) as refused:
        _change(fair, *prizes)

    assert expected == refused.value.errors[0][0]
    assert before == fair.books


def test_units_that_are_not_there_are_refused(services: Services) -> None:
    """And what would need a second person: where it is raised, not where it is lowered."""
    sale, fair = _paused(services)

    with pytest.raises(Conflict, match="are left") as scarce:
        _change(fair, PrizeChange(1, stock=11))
    settings = services.settings.model_copy(update={"approval_budgets": '{"CNY": 1}'})
    costly = Fair(replace(services, settings=settings), fair.lottery_id)
    with pytest.raises(Conflict) as above:
        _change(costly, PrizeChange(1, stock=5))
    _change(costly, PrizeChange(1, stock=3))

    assert ("NOT_ENOUGH_STOCK", "ABOVE_BUDGET") == (scarce.value.code, above.value.code)
    assert (3, [3, 1_000_000]) == (sale.books["reserved_quantity"], fair.stock)


def test_only_a_lottery_from_which_nobody_draws_changes(services: Services) -> None:
    """Not one that runs, not one that is over; one that is to come does."""
    running, over = open_lottery(services, [thanks()]), open_lottery(services, [thanks()])
    later = open_lottery(services, [thanks()], start=utc_now() + timedelta(minutes=5))
    end_lottery(services, over.lottery_id, OPERATOR)

    for fair, status in ((running, "active"), (over, "ended")):
        with pytest.raises(Conflict) as refused:
            _change(fair, name="Another")
        assert ("INVALID_STATUS", status) == (refused.value.code, refused.value.evidence["current_status"])
    _change(later, PrizeChange(1, stock=7), name="Another")

    assert ("Another", [7]) == (later.books["name"], later.stock)


def test_of_two_who_change_the_same_version_one_is_told_so(services: Services) -> None:
    """However close; the same change again is no other one."""
    _, fair = _paused(services, total=1_000)
    version = fair.books["version"]

    def change(stock: int) -> Any:
        try:
            return _change(fair, PrizeChange(1, stock=stock), version=version)
        except Conflict as error:
            return error.code

    with ThreadPoolExecutor(6) as crowd:
        answers = list(crowd.map(change, range(5, 11)))
    won = fair.prizes("stock")[0]

    assert (1, 5) == (answers.count(None), answers.count("LOTTERY_CHANGED"))
    assert change(won) is None
    assert version + 1 == fair.books["version"]
    assert_sound(services)


def test_a_change_that_dies_changes_nothing(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate is cold until the sweep has it rebuilt as it was; afterwards the change is made."""
    sale, fair = _paused(services)
    before = fair.gate(), fair.books, sale.books["reserved_quantity"]

    with dies_at(monkeypatch, "lottery.before_change"):
        _change(fair, PrizeChange(1, stock=9))

    assert DrawOutcome.NOT_WARMED == fair.draw().outcome
    assert 1 == fair.sweep()["preheated"]
    fair.preheat()
    assert before == (fair.gate(), fair.books, sale.books["reserved_quantity"])
    _change(fair, PrizeChange(1, stock=9))
    assert 9 == fair.stock[0]


def test_without_redis_stock_stays_and_odds_change(services: Services) -> None:
    """Nobody knows what waits; the gate learns of the odds later."""
    _, fair = _paused(services)
    dead = client_without_retries("unix:///nowhere/valkey.sock", 100)
    away = Fair(replace(services, redis=dead), fair.lottery_id)

    with pytest.raises(StoreUnavailable):
        _change(away, PrizeChange(1, stock=9))
    _change(away, PrizeChange(1, weight=400_000), PrizeChange(2, weight=600_000))
    fair.sweep()

    assert ([4, 1_000_000], [400_000, 600_000]) == (fair.prizes("stock"), fair.prizes("weight"))
    resume_lottery(services, fair.lottery_id)
    assert 2 == fair.draw(number=450_000).prize_no
